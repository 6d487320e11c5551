//! Compiles the C layer with the headers of the site's MPI.

include!("../front/compile_layer.rs");

fn main() {
    compile_layer(&["src/layer.c", "src/types.c"], "vgasnet-mpi-io");
}
