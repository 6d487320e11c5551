! Parts of the module not in the example: forms of its own, omitted arguments, and calls of each chapter. The argument
! is the path of a file.
module handlers
  use vgasnet
  implicit none
  integer(c_int), volatile :: seen = 0, answered = 0
  integer(vgasnet_node_t) :: me, ranks, next

contains
  subroutine check(is_right, what)
    logical, intent(in) :: is_right
    character(*), intent(in) :: what
    if (is_right) return
    print "(*(g0))", "rank ", me, ": ", what, " is wrong"
    call vgasnet_exit(1)
  end subroutine

  subroutine on_long(token, buf, nbytes, first, second) bind(C)
    type(c_ptr), value :: token, buf
    integer(c_size_t), value :: nbytes
    integer(vgasnet_handlerarg_t), value :: first, second
    integer(vgasnet_node_t) :: from
    integer(c_int32_t), pointer :: words(:)

    call check(vgasnet_AMGetMsgSource(token, from) == VGASNET_OK, "the source of a message")
    call c_f_pointer(buf, words, [nbytes / 4])
    call check(first == 5 .and. second == -6 .and. all(words == from), "a long message")
    call check(vgasnet_AMReplyMedium(token, 128, buf, nbytes, [first]) == VGASNET_OK, "a reply")
    seen = seen + 1
  end subroutine

  subroutine on_answer(token, buf, nbytes, first) bind(C)
    type(c_ptr), value :: token, buf
    integer(c_size_t), value :: nbytes
    integer(vgasnet_handlerarg_t), value :: first
    integer(c_int32_t), pointer :: words(:)

    call c_f_pointer(buf, words, [nbytes / 4])
    call check(c_associated(token) .and. first == 5 .and. all(words == me), "an answer")
    answered = answered + 1
  end subroutine
end module

program calls
  use handlers
  implicit none
  type(vgasnet_handlerentry_t) :: entries(2)
  character(1024) :: path

  call get_command_argument(1, path)
  call check(vgasnet_init() == VGASNET_OK, "init")
  me = vgasnet_mynode()
  ranks = vgasnet_nodes()
  next = modulo(me + 1, ranks)
  call check(vgasnet_getenv("CHECK_RANKS") /= "" .and. vgasnet_getenv("CHECK_NO_SUCH") == "", "the environment")
  entries(1) = vgasnet_entry(c_funloc(on_long), 255)
  entries(2) = vgasnet_entry(c_funloc(on_answer))
  call check(vgasnet_attach(131072_c_intptr_t, entries) == VGASNET_OK, "attach")
  call check(all(vgasnet_index(entries) == [255, 128]), "an index")
  call errors()
  call pointers()
  call messages()
  call operations()
  call teams()
  call files(trim(path))
  call check(vgasnet_barrier(3, 0) == VGASNET_OK, "a barrier with a name")

contains
  subroutine errors()
    character(:), allocatable :: line

    call check(vgasnet_set_waitmode(9) == VGASNET_ERR_BAD_ARG, "a refusal")
    line = vgasnet_string(vgasnet_ErrorLine())
    call check(index(line, "vgasnet_set_waitmode: mode 9") > 0, "the line of a refusal")
    call check(index(vgasnet_error_text(VGASNET_ERR_IO), "VGASNET_ERR_IO: the file system") == 1, "the text of a code")
    call check(vgasnet_string(c_null_ptr) == "", "no text")
    call check(vgasnet_string(vgasnet_config_string()) /= "", "the configuration")
    call check(.not. c_associated(vgasnet_at(ranks, 0)), "the segment of no rank")
  end subroutine

  subroutine pointers()
    integer(c_int8_t), pointer :: bytes(:)
    real(c_float), pointer :: reals(:)
    complex(c_double_complex), pointer :: numbers(:), table(:, :)

    call vgasnet_segment_pointer(bytes)
    call check(size(bytes, kind=c_int64_t) == 131072, "the size of an array")
    bytes = 1
    call vgasnet_segment_pointer(reals, 10_c_int64_t, 65536_c_int64_t)
    reals = 2.5
    call vgasnet_segment_pointer(numbers, offset=131072_c_int64_t - 160)
    call check(size(numbers) == 10, "an array at the end")
    table(1:2, 1:5) => numbers
    table(2, 5) = (1, -1)
    call check(numbers(10) == (1, -1) .and. bytes(65537) == 0 .and. sum(reals) == 25, "what is stored")
    call vgasnet_segment_pointer(reals, 0_c_int64_t)
    call check(.not. associated(reals), "an array of nothing")
    call check(vgasnet_barrier() == VGASNET_OK, "a barrier")
  end subroutine

  subroutine messages()
    integer(c_int32_t), target :: words(100)
    type(vgasnet_hsl_t) :: lock = VGASNET_HSL_INITIALIZER

    call vgasnet_hsl_lock(lock)
    call check(vgasnet_hsl_trylock(lock) == VGASNET_OK, "a lock of this thread")
    call vgasnet_hsl_unlock(lock)
    call vgasnet_hsl_unlock(lock)
    words = me
    call check(vgasnet_AMRequestLongAsync(next, 255, c_loc(words), 400_c_size_t, vgasnet_at(next, 4096), [5, -6]) == VGASNET_OK, &
      "a request")
    do while (seen == 0 .or. answered == 0)
      call check(vgasnet_AMPoll() == VGASNET_OK, "a poll")
    end do
    call check(vgasnet_barrier() == VGASNET_OK, "a barrier")
  end subroutine

  subroutine operations()
    integer(c_int32_t), target :: got(100)
    integer(c_int64_t), target :: was
    integer(vgasnet_handle_t) :: handle
    type(vgasnet_memvec_t) :: here(1), there(2)
    type(vgasnet_stats_t) :: numbers

    got = -1
    there(1) = vgasnet_memvec_t(vgasnet_at(next, 4096), 200)
    there(2) = vgasnet_memvec_t(vgasnet_at(next, 4296), 200)
    here(1) = vgasnet_memvec_t(c_loc(got), 400)
    call vgasnet_getv_bulk(1_c_size_t, here, next, 2_c_size_t, there)
    call check(all(got == me), "a list")
    call vgasnet_put_val(next, vgasnet_at(next, 8), -2_c_int64_t, 8_c_size_t)
    call check(vgasnet_get_val(next, vgasnet_at(next, 8), 8_c_size_t) == -2, "a value")
    handle = vgasnet_atomic_u64_nb(c_loc(was), next, vgasnet_at(next, 8), VGASNET_ATOMIC_IMAX, 7_c_int64_t, 0_c_int64_t)
    call vgasnet_wait_syncnb(handle)
    call check(was == -2 .and. vgasnet_atomic_cas_u64(next, vgasnet_at(next, 8), 7_c_int64_t, 9_c_int64_t) == 7, "an atomic number")
    call check(vgasnet_try_syncnb(VGASNET_INVALID_HANDLE) == VGASNET_OK, "no operation")
    call check(vgasnet_barrier() == VGASNET_OK, "a barrier")
    ! Without options.
    call check(vgasnet_readonly_begin(next, vgasnet_at(next, 4096), 400_c_size_t, 0) == VGASNET_OK, "a declared range")
    call vgasnet_get_weighted(c_loc(got), next, vgasnet_at(next, 4096), 400_c_size_t, 2.0)
    call check(vgasnet_readonly_end(next, vgasnet_at(next, 4096), 400_c_size_t) == VGASNET_OK, "its end")
    call check(vgasnet_stats(numbers, c_sizeof(numbers)) == VGASNET_ERR_NOT_READY, "statistics that are not counted")
    call check(vgasnet_advise(vgasnet_at(me, 0), 4096_c_size_t, VGASNET_ADVISE_WILLNEED) == VGASNET_OK, "advice")
  end subroutine

  subroutine teams()
    integer(vgasnet_team_handle_t) :: team
    integer(vgasnet_coll_handle_t) :: handle
    integer(c_int32_t), target :: mine, all_of_them(64)
    integer :: rank

    team = vgasnet_coll_team_split(VGASNET_TEAM_ALL, 0, ranks - me, c_null_ptr)
    call check(vgasnet_coll_team_size(team) == ranks .and. vgasnet_coll_team_node2rank(team, me) == ranks - 1 - me, "a team")
    mine = me
    handle = vgasnet_coll_gather_all_nb(team, c_loc(all_of_them), c_loc(mine), 4_c_size_t, VGASNET_COLL_IN_MYSYNC)
    call vgasnet_coll_wait_sync(handle)
    call check(all(all_of_them(:ranks) == [(ranks - rank, rank=1, ranks)]), "what the team has gathered")
    call vgasnet_coll_team_free(team)
  end subroutine

  subroutine files(path)
    character(*), intent(in) :: path
    integer(vgasnet_file_t) :: file
    type(vgasnet_file_options_t) :: options
    real(c_double), target :: values(10), read(10)
    integer :: unit

    options%struct_bytes = c_sizeof(options)
    options%io_ranks = 1
    values = me
    call check(vgasnet_file_open(path, VGASNET_FILE_READ + VGASNET_FILE_WRITE + VGASNET_FILE_CREATE, file, mode=int(o'600'), &
      options=options) == VGASNET_OK, "a file")
    call check(vgasnet_file_write_at(file, 80_c_int64_t * me, c_loc(values), 80_c_size_t) == VGASNET_OK, "a write")
    call check(vgasnet_file_sync(file) == VGASNET_OK, "a sync")
    ! Without the number of bytes, and without the number of an error.
    call check(vgasnet_file_read_at(file, 80_c_int64_t * next, c_loc(read), 80_c_size_t) == VGASNET_OK, "a read")
    call check(all(read == next) .and. vgasnet_file_error(file) == VGASNET_OK, "what was read")
    call check(vgasnet_file_close(file) == VGASNET_OK, "the end of a file")
    ! As in C.
    call check(vgasnet_file_open_c(VGASNET_TEAM_ALL, path//c_null_char, VGASNET_FILE_READ, 0, file=file) == VGASNET_OK, &
      "a file again")
    call check(vgasnet_file_close(file) == VGASNET_OK, "its end")
    if (me /= 0) return
    open (newunit=unit, file=path, status="old")
    close (unit, status="delete")
  end subroutine
end program
