// Block arrays larger than memory: three arrays of --mib MiB each over all locales, filled, combined, summed, and read at
// scattered places. Every element is checked.
//
//     chpl --fast examples/chapel/arrays.chpl -o arrays
//     VGASNET_POOL_SIZE=64M vgasnetrun -n 2 ./arrays -nl 2 --mib=256
use BlockDist;

config const mib = 256;
config const gets = 20000;

const n = mib * 1024 * 1024 / 8;
const Space = {1..n};
const D = Space dmapped Block(boundingBox=Space);

proc main() {
  var A, B, C: [D] int;
  forall i in D {
    A[i] = i;
    B[i] = 3 * i;
  }
  forall (a, b, c) in zip(A, B, C) do c = a + 2 * b;
  const wrong = + reduce [i in D] (C[i] != 7 * i);
  const isSum = (+ reduce C) == 7 * (n * (n + 1) / 2);

  // Most elements are at other locales.
  var wrongGets: [LocaleSpace] int;
  coforall loc in Locales do on loc {
    var ownWrong = 0;
    for k in 1..gets {
      const i = 1 + (k * 7919 * (here.id + 1)) % n;
      if A[i] != i then ownWrong += 1;
    }
    wrongGets[here.id] = ownWrong;
  }
  const isRight = wrong == 0 && isSum && (+ reduce wrongGets) == 0;
  writeln(numLocales, " locales, ", 3 * mib, " MiB: ", if isRight then "every element is right" else "elements are wrong");
  if !isRight then exit(1);
}
