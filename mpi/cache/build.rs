//! Compiles the C layer with the headers of the site's MPI.

include!("../front/compile_layer.rs");
include!("../../packaging/test_faults.rs");

fn main() {
    test_faults();
    println!("cargo::rerun-if-changed=../../packaging/test_faults.rs");
    compile_layer(&["src/layer.c", "src/handles.c", "src/words.c"], "vgasnet-mpi-cache");
}
