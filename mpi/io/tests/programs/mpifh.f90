program mpifh
  implicit none
  include 'mpif.h'
  integer :: file, tile, request, info, status(MPI_STATUS_SIZE)
  include 'body.inc'
end program
