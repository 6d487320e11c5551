program usempi
  use mpi
  implicit none
  integer :: file, tile, request, info, status(MPI_STATUS_SIZE)
  include 'body.inc'
end program
