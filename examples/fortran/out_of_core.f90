! An array larger than the pool, filled and read through a Fortran pointer. Neighbours get and put blocks of it. Then Active
! Messages, a reduction, and a file shared by all ranks. Everything is checked.
!
! usage: out_of_core FILE [MIB]
!
! MIB (64) is the size of each rank's array. FILE is created, and removed at the end.
module neighbours
  use vgasnet
  implicit none
  integer, parameter :: block_words = 4096 ! words in a get or put
  integer(c_size_t), parameter :: block_bytes = 8 * block_words
  integer(vgasnet_node_t) :: me, ranks, next
  ! Set by handlers. Handlers run inside calls to the library, so the variables are volatile.
  integer(c_int64_t), volatile :: greeted = 0, sum_of_block = 0, answers = 0
  integer(vgasnet_handler_t) :: answer_index

contains
  ! Handler of a Medium: sums the payload and replies with its own argument.
  subroutine on_block(token, buf, nbytes, from) bind(C)
    type(c_ptr), value :: token, buf
    integer(c_size_t), value :: nbytes
    integer(vgasnet_handlerarg_t), value :: from
    integer(c_int64_t), pointer :: words(:)

    call c_f_pointer(buf, words, [nbytes / 8])
    sum_of_block = sum(words)
    greeted = greeted + 1
    call must(vgasnet_AMReplyShort(token, answer_index, [from]))
  end subroutine

  subroutine on_answer(token, from) bind(C)
    type(c_ptr), value :: token
    integer(vgasnet_handlerarg_t), value :: from

    if (c_associated(token) .and. from == me) answers = answers + 1
  end subroutine

  logical function is_greeted()
    is_greeted = greeted == 1 .and. answers == 1
  end function

  ! The function of the reduction: a sum.
  subroutine add(results, result_count, left_operands, left_count, right_operands, elem_size, flags, arg) bind(C)
    type(c_ptr), value :: results, left_operands, right_operands
    integer(c_size_t), value :: result_count, left_count, elem_size
    integer(c_int), value :: flags, arg
    integer(c_int64_t), pointer :: sums(:), left(:), right(:)

    call check(elem_size == 8 .and. left_count == result_count .and. flags == 0 .and. arg == 0, "what a reduction is given")
    call c_f_pointer(results, sums, [result_count])
    call c_f_pointer(left_operands, left, [result_count])
    call c_f_pointer(right_operands, right, [result_count])
    sums = left + right
  end subroutine

  ! Ends the job on an error. The library has already printed the reason.
  subroutine must(code)
    integer(c_int), intent(in) :: code
    if (code /= VGASNET_OK) call vgasnet_exit(1_c_int)
  end subroutine

  subroutine check(is_right, what)
    logical, intent(in) :: is_right
    character(*), intent(in) :: what

    if (is_right) return
    print "(*(g0))", "rank ", me, ": ", what, " is wrong"
    call vgasnet_exit(1_c_int)
  end subroutine

  ! The initial word at a place in a rank's array.
  elemental function word(rank, place)
    integer(vgasnet_node_t), intent(in) :: rank
    integer(c_int64_t), intent(in) :: place
    integer(c_int64_t) :: word
    word = rank * 1000000007_c_int64_t + place
  end function

  ! The sum of a rank's array with this number of words.
  elemental function sum_of(rank, words)
    integer(vgasnet_node_t), intent(in) :: rank
    integer(c_int64_t), intent(in) :: words
    integer(c_int64_t) :: sum_of
    sum_of = words * rank * 1000000007_c_int64_t + words * (words + 1) / 2
  end function
end module

program out_of_core
  use, intrinsic :: iso_fortran_env, only: error_unit
  use neighbours
  implicit none
  integer(c_int64_t), pointer :: mine(:)
  integer(c_int64_t) :: words, i
  character(:), allocatable :: path
  type(vgasnet_handlerentry_t) :: handlers(2)

  call must(vgasnet_init())
  me = vgasnet_mynode()
  ranks = vgasnet_nodes()
  next = modulo(me + 1, ranks)
  call read_command_line(path, words)
  handlers(1) = vgasnet_entry(c_funloc(on_block))
  handlers(2) = vgasnet_entry(c_funloc(on_answer))
  call must(vgasnet_attach(8 * words, handlers))
  answer_index = vgasnet_index(handlers(2))

  ! Plain stores through the pointer. vgasnet fetches and evicts pages underneath.
  call vgasnet_segment_pointer(mine, words)
  do i = 1, words
    mine(i) = word(me, i)
  end do
  call check(sum(mine) == sum_of(me, words), "the sum of the own array")
  call must(vgasnet_barrier())

  call get_and_put(words)
  call greet(vgasnet_index(handlers(1)))
  call reduce(words)
  call share_file()
  if (me == 0) print "(*(g0))", ranks, " ranks, ", words / 131072, " MiB each: all is right"
  call vgasnet_exit(0_c_int)

contains
  subroutine read_command_line(path, words)
    character(:), allocatable, intent(out) :: path
    integer(c_int64_t), intent(out) :: words
    character(1024) :: argument
    integer(c_int64_t) :: mib
    integer :: status

    mib = 64
    status = 0
    call get_command_argument(1, argument)
    path = trim(argument)
    if (command_argument_count() == 2) then
      call get_command_argument(2, argument)
      read (argument, *, iostat=status) mib
    end if
    if (path == "--help" .or. command_argument_count() < 1 .or. command_argument_count() > 2 .or. status /= 0 .or. mib < 1) then
      if (me == 0 .and. path == "--help") print "(a)", "usage: out_of_core FILE [MIB]"
      if (me == 0 .and. path /= "--help") write (error_unit, "(a)") "usage: out_of_core FILE [MIB]"
      call vgasnet_exit(merge(0_c_int, 2_c_int, path == "--help"))
    end if
    words = mib * 131072
  end subroutine

  ! Gets the last block of the next rank's array, puts a block to its first words, and restores them.
  subroutine get_and_put(words)
    integer(c_int64_t), intent(in) :: words
    integer(c_int64_t), target :: last(block_words), first(block_words)
    integer(vgasnet_handle_t) :: handles(2)
    integer(c_int64_t) :: i

    handles(1) = vgasnet_get_nb_bulk(c_loc(last), next, vgasnet_at(next, 8 * words - block_bytes), block_bytes)
    handles(2) = vgasnet_get_nb_bulk(c_loc(first), next, vgasnet_at(next, 0), block_bytes)
    call vgasnet_wait_syncnb_all(handles, 2_c_size_t)
    call check(all(last == [(word(next, words - block_words + i), i=1, block_words)]), "the last block of the next rank")
    call check(all(first == [(word(next, i), i=1, block_words)]), "the first block of the next rank")
    call must(vgasnet_barrier())

    first = -first
    call vgasnet_put(next, vgasnet_at(next, 0), c_loc(first), block_bytes)
    call must(vgasnet_barrier())
    call check(mine(1) == -word(me, 1_c_int64_t), "the word that was put")
    mine(1:block_words) = -mine(1:block_words)
    ! All ranks increment the last word of rank 0.
    i = vgasnet_atomic_fetch_add_u64(0, vgasnet_at(0, 8 * words - 8), 1_c_int64_t)
    call must(vgasnet_barrier())
    if (me == 0) then
      call check(mine(words) == word(0, words) + ranks, "the number that all count up")
      mine(words) = word(0, words)
    end if
    call must(vgasnet_barrier())
  end subroutine

  ! Each rank sends a block to the next rank and waits for the answer.
  subroutine greet(index)
    integer(vgasnet_handler_t), intent(in) :: index
    integer(c_int64_t), target :: words(16)
    integer(c_int64_t) :: i

    words = [(word(me, i), i=1, 16)]
    call must(vgasnet_AMRequestMedium(next, index, c_loc(words), 128_c_size_t, [me]))
    call vgasnet_blockuntil(is_greeted)
    call check(sum_of_block == sum_of(modulo(me - 1, ranks), 16_c_int64_t), "the block in the message")
    call must(vgasnet_barrier())
  end subroutine

  ! Reduces a sum over all ranks to rank 0, then broadcasts it.
  subroutine reduce(words)
    integer(c_int64_t), intent(in) :: words
    integer(c_int64_t), target :: mine_and_one(2), total(2)
    integer(vgasnet_node_t) :: rank
    type(vgasnet_coll_fn_entry_t) :: functions(1)

    functions(1)%fnptr = c_funloc(add)
    call vgasnet_coll_init(my_image=0, fn_tbl=functions, fn_count=1_c_size_t, init_flags=0)
    mine_and_one = [sum(mine), 1_c_int64_t]
    total = 0
    call vgasnet_coll_reduce(VGASNET_TEAM_ALL, 0, c_loc(total), c_loc(mine_and_one), 0_c_size_t, 0_c_size_t, 8_c_size_t, &
      2_c_size_t, 0, 0, 0)
    call vgasnet_coll_broadcast(VGASNET_TEAM_ALL, c_loc(total), 0, c_loc(total), 16_c_size_t, 0)
    call check(total(2) == ranks, "the number of ranks")
    call check(total(1) == sum([(sum_of(rank, words), rank=0, ranks - 1)]), "the sum over all ranks")
  end subroutine

  ! Each rank writes a block of its segment to the file, and reads the next rank's block.
  subroutine share_file()
    integer(vgasnet_file_t) :: file
    integer(c_int64_t), target :: read(block_words)
    integer(c_int64_t) :: i, bytes
    integer(c_size_t) :: nread
    integer :: unit

    call must(vgasnet_file_open(path, VGASNET_FILE_READ + VGASNET_FILE_WRITE + VGASNET_FILE_CREATE + VGASNET_FILE_TRUNCATE, file))
    call must(vgasnet_file_write_at(file, me * block_bytes, vgasnet_at(me, 0), block_bytes))
    call must(vgasnet_barrier())
    call must(vgasnet_file_read_at(file, next * block_bytes, c_loc(read), block_bytes, nread))
    call check(nread == block_bytes .and. all(read == [(word(next, i), i=1, block_words)]), "what the next rank has written")
    call must(vgasnet_file_size(file, bytes))
    call check(bytes == ranks * block_bytes, "the size of the file")
    call must(vgasnet_file_close(file))
    if (me == 0) then
      open (newunit=unit, file=path, status="old")
      close (unit, status="delete")
    end if
  end subroutine
end program
