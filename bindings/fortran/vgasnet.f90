! Module vgasnet: the interface of vgasnet.h for Fortran 2018, with the names of C. docs/reference/fortran.md explains its use.
!
! Addresses of the program's variables and of other ranks' segments are of type(c_ptr), since a segment is no variable of Fortran.
! c_loc gives the address of a variable. A local buffer is a contiguous target: compilers pass a section of an array as a copy,
! which is gone before a non-blocking call is complete.
!
! Numbers without a sign are integers with the same bits. Handles of operations, collectives, teams and files are integers
! of their own kinds. Where C takes a null pointer, the argument is optional here, or c_null_ptr is given.
!
! Not here: VGASNET_CONFIG_STRING, returned by vgasnet_config_string() of the same name; vgasnet_client_attach_hook and
! vgasnet_debug_layout, since a module's variable bound to C's is another variable; and vgasnet_AMRequestShort0 to 16 and their
! like, replaced by one function each.
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

  ! Added for Fortran: shorter forms of functions of C.
  ! vgasnet_init(): without the command line. Sets SIGQUIT to its default action first, the end of the rank.
  interface vgasnet_init
    procedure :: vgasnet_init_c, vgasnet_init_alone
  end interface
  ! vgasnet_attach(segsize [, handlers]): bytes of the segment, and a table of handlers; the call fills in their indices.
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
  ! vgasnet_file_open(path, flags, file [, team] [, mode] [, options]): by all ranks of VGASNET_TEAM_ALL, with mode 644, by
  ! default. Blanks at the end of the path do not count.
  interface vgasnet_file_open
    procedure :: vgasnet_file_open_c, vgasnet_file_open_path
  end interface
  ! vgasnet_at(rank, offset): the address offset bytes into a rank's segment; null if there is no such rank.
  interface vgasnet_at
    procedure :: vgasnet_at_default, vgasnet_at_long
  end interface
  interface vgasnet_AMRequestLongAsync
    procedure :: vgasnet_AMRequestLong
  end interface
  ! vgasnet_segment_pointer(array [, count] [, offset]): points an array pointer of rank 1 to count elements of the own segment,
  ! offset bytes into it, both of kind c_int64_t; without count, to all further elements. For a segment of 0 bytes the pointer
  ! is null. Elements are loaded and stored in place. More dimensions: table(1:m, 1:n) => array.
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

  ! All ranks' segments, after the first query.
  type(vgasnet_seginfo_t), allocatable, save, private :: segments(:)

contains
  include "vgasnet/fortran_job.inc"
  include "vgasnet/fortran_messages.inc"
  include "vgasnet/fortran_atomics.inc"
  include "vgasnet/fortran_segment.inc"
end module vgasnet
