! As mpifh.f90, by "use mpi".
program usempi
  use mpi
  implicit none
  integer :: code, me, other, win, info, request, i, got(2), again(2)
  integer, asynchronous :: memory(16)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, at
  include 'body.inc'
end program
