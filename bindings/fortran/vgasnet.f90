! Module vgasnet: the interface of vgasnet.h for Fortran 2018, with the names of C. docs/reference/fortran.md tells how to use it.
!
! Addresses are of type(c_ptr), those of the program's own variables, by c_loc, and those of other ranks alike: a segment is no
! variable of Fortran, and a compiler that passes a section of an array passes a copy, which is gone before a call without
! waiting is complete. So a local buffer is a contiguous target.
!
! Numbers without a sign are integers with the same bits. Handles of operations, collectives, teams and files are integers
! of their own kinds. Where C takes a null pointer, the argument is optional here, or c_null_ptr is given.
!
! Not here: VGASNET_CONFIG_STRING, whose name is that of vgasnet_config_string(), which returns it;
! vgasnet_client_attach_hook and vgasnet_debug_layout, since a compiler makes a variable of its own of what a module
! binds to C's; and vgasnet_AMRequestShort0 to 16 and their like, for which there is one function each.
module vgasnet
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private :: error_unit

  ! The chapters, as in include/vgasnet.
  include "vgasnet/types.inc"
  include "vgasnet/version.inc"
  include "vgasnet/errors.inc"
  include "vgasnet/job.inc"
  include "vgasnet/segment.inc"
  include "vgasnet/transfer.inc"
  include "vgasnet/nonblocking.inc"
  include "vgasnet/values.inc"
  include "vgasnet/atomics.inc"
  include "vgasnet/lists.inc"
  include "vgasnet/readonly.inc"
  include "vgasnet/residency.inc"
  include "vgasnet/messages.inc"
  include "vgasnet/locks.inc"
  include "vgasnet/barrier.inc"
  include "vgasnet/collectives.inc"
  include "vgasnet/files.inc"
  include "vgasnet/stats.inc"
  include "vgasnet/debug.inc"

  ! What is added for Fortran: shorter forms of functions of C.
  ! vgasnet_init(): without the command line. SIGQUIT is set to its default before, which ends the rank.
  interface vgasnet_init
    procedure :: vgasnet_init_c, vgasnet_init_alone
  end interface
  ! vgasnet_attach(segsize [, handlers]): bytes of the segment, and a table whose indices are filled in.
  interface vgasnet_attach
    procedure :: vgasnet_attach_c, vgasnet_attach_table
  end interface
  ! vgasnet_getenv("NAME"): the value of a variable, or "".
  interface vgasnet_getenv
    procedure :: vgasnet_getenv_c, vgasnet_getenv_text
  end interface
  ! vgasnet_barrier(): without a name.
  interface vgasnet_barrier
    procedure :: vgasnet_barrier_c, vgasnet_barrier_unnamed
  end interface
  ! vgasnet_file_open(path, flags, file [, team] [, mode] [, options]): by all ranks of VGASNET_TEAM_ALL, with mode 644, unless
  ! told otherwise. Blanks at the end of the path do not count.
  interface vgasnet_file_open
    procedure :: vgasnet_file_open_c, vgasnet_file_open_path
  end interface
  ! vgasnet_at(rank, offset): the address so many bytes from the begin of a rank's segment; null if there is no such rank.
  interface vgasnet_at
    procedure :: vgasnet_at_default, vgasnet_at_long
  end interface
  interface vgasnet_AMRequestLongAsync
    procedure :: vgasnet_AMRequestLong
  end interface
  ! vgasnet_segment_pointer(array [, count] [, offset]): makes a pointer to an array of rank 1 point to count elements of the own
  ! segment, offset bytes behind its begin, both of kind c_int64_t; without count, to as many as there are. Of a segment of 0
  ! bytes the pointer is null. Each element is loaded and stored where it is. More dimensions: table(1:m, 1:n) => array.
  interface vgasnet_segment_pointer
    procedure :: pointer_to_int8, pointer_to_int16, pointer_to_int32, pointer_to_int64
    procedure :: pointer_to_real32, pointer_to_real64, pointer_to_complex32, pointer_to_complex64
  end interface

  abstract interface
    ! For vgasnet_blockuntil: whether the wait is over.
    logical function vgasnet_condition()
    end function
  end interface

  private :: vgasnet_init_alone, vgasnet_attach_table, vgasnet_getenv_text, vgasnet_barrier_unnamed, vgasnet_file_open_path
  private :: vgasnet_at_default, vgasnet_at_long
  private :: pointer_to_int8, pointer_to_int16, pointer_to_int32, pointer_to_int64
  private :: pointer_to_real32, pointer_to_real64, pointer_to_complex32, pointer_to_complex64, place_in_segment

  ! All ranks' segments, once they have been asked for.
  type(vgasnet_seginfo_t), allocatable, save, private :: segments(:)

contains
  include "vgasnet/fortran_job.inc"
  include "vgasnet/fortran_messages.inc"
  include "vgasnet/fortran_atomics.inc"
  include "vgasnet/fortran_segment.inc"
end module vgasnet
