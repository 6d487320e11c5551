//! The C interface as users have it: C and C++ programs, compiled against the header and the library, run as jobs.

mod bad_input;
mod header;
mod programs;
mod support;
