! As mpifh.f90, by "use mpi_f08".
program usempif08
  use mpi_f08
  implicit none
  integer :: code, me, other, i
  integer, asynchronous :: got(2), again(2)
  type(MPI_Win) :: win
  type(MPI_Info) :: info
  type(MPI_Request) :: request
  integer, asynchronous :: memory(16)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, at
  include 'body.inc'
end program
