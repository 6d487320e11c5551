program usempif08
  use mpi_f08
  implicit none
  type(MPI_File) :: file
  type(MPI_Datatype) :: tile
  type(MPI_Request) :: request
  type(MPI_Info) :: info
  type(MPI_Status) :: status
  include 'body.inc'
end program
