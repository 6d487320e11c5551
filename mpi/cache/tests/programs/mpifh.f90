! A hit after the owner has changed its memory, by mpif.h.
program mpifh
  implicit none
  include 'mpif.h'
  integer :: code, me, other, win, info, request, i, got(2), again(2)
  integer, asynchronous :: memory(16)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, at
  include 'body.inc'
end program
