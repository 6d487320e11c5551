//! The C interface of GASNet-EX: the functions of `include/gasnet-ex/vgasnet_ex.h` and its chapters, over which the headers there define
//! GASNet-EX's names. A file a chapter.

mod am;
mod barrier;
mod events;
mod objects;
mod rma;
mod start;
mod system;
