/* GASNet-1's requests and replies with 0 to 16 arguments, by their own names. Clients include gasnet.h. */
#ifndef GASNET_MESSAGE_NAMES_H
#define GASNET_MESSAGE_NAMES_H

/** Sends a Short request with 0 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort0 vgasnet_AMRequestShort0
/** Sends a Short request with 1 argument. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort1 vgasnet_AMRequestShort1
/** Sends a Short request with 2 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort2 vgasnet_AMRequestShort2
/** Sends a Short request with 3 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort3 vgasnet_AMRequestShort3
/** Sends a Short request with 4 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort4 vgasnet_AMRequestShort4
/** Sends a Short request with 5 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort5 vgasnet_AMRequestShort5
/** Sends a Short request with 6 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort6 vgasnet_AMRequestShort6
/** Sends a Short request with 7 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort7 vgasnet_AMRequestShort7
/** Sends a Short request with 8 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort8 vgasnet_AMRequestShort8
/** Sends a Short request with 9 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort9 vgasnet_AMRequestShort9
/** Sends a Short request with 10 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort10 vgasnet_AMRequestShort10
/** Sends a Short request with 11 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort11 vgasnet_AMRequestShort11
/** Sends a Short request with 12 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort12 vgasnet_AMRequestShort12
/** Sends a Short request with 13 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort13 vgasnet_AMRequestShort13
/** Sends a Short request with 14 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort14 vgasnet_AMRequestShort14
/** Sends a Short request with 15 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort15 vgasnet_AMRequestShort15
/** Sends a Short request with 16 arguments. @see vgasnet_AMRequestShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestShort16 vgasnet_AMRequestShort16

/** Sends a Medium request with 0 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium0 vgasnet_AMRequestMedium0
/** Sends a Medium request with 1 argument. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium1 vgasnet_AMRequestMedium1
/** Sends a Medium request with 2 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium2 vgasnet_AMRequestMedium2
/** Sends a Medium request with 3 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium3 vgasnet_AMRequestMedium3
/** Sends a Medium request with 4 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium4 vgasnet_AMRequestMedium4
/** Sends a Medium request with 5 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium5 vgasnet_AMRequestMedium5
/** Sends a Medium request with 6 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium6 vgasnet_AMRequestMedium6
/** Sends a Medium request with 7 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium7 vgasnet_AMRequestMedium7
/** Sends a Medium request with 8 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium8 vgasnet_AMRequestMedium8
/** Sends a Medium request with 9 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium9 vgasnet_AMRequestMedium9
/** Sends a Medium request with 10 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium10 vgasnet_AMRequestMedium10
/** Sends a Medium request with 11 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium11 vgasnet_AMRequestMedium11
/** Sends a Medium request with 12 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium12 vgasnet_AMRequestMedium12
/** Sends a Medium request with 13 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium13 vgasnet_AMRequestMedium13
/** Sends a Medium request with 14 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium14 vgasnet_AMRequestMedium14
/** Sends a Medium request with 15 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium15 vgasnet_AMRequestMedium15
/** Sends a Medium request with 16 arguments. @see vgasnet_AMRequestMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestMedium16 vgasnet_AMRequestMedium16

/** Sends a Long request with 0 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong0 vgasnet_AMRequestLong0
/** Sends a Long request with 1 argument. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong1 vgasnet_AMRequestLong1
/** Sends a Long request with 2 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong2 vgasnet_AMRequestLong2
/** Sends a Long request with 3 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong3 vgasnet_AMRequestLong3
/** Sends a Long request with 4 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong4 vgasnet_AMRequestLong4
/** Sends a Long request with 5 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong5 vgasnet_AMRequestLong5
/** Sends a Long request with 6 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong6 vgasnet_AMRequestLong6
/** Sends a Long request with 7 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong7 vgasnet_AMRequestLong7
/** Sends a Long request with 8 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong8 vgasnet_AMRequestLong8
/** Sends a Long request with 9 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong9 vgasnet_AMRequestLong9
/** Sends a Long request with 10 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong10 vgasnet_AMRequestLong10
/** Sends a Long request with 11 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong11 vgasnet_AMRequestLong11
/** Sends a Long request with 12 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong12 vgasnet_AMRequestLong12
/** Sends a Long request with 13 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong13 vgasnet_AMRequestLong13
/** Sends a Long request with 14 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong14 vgasnet_AMRequestLong14
/** Sends a Long request with 15 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong15 vgasnet_AMRequestLong15
/** Sends a Long request with 16 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLong16 vgasnet_AMRequestLong16

/** Sends a Long request with 0 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync0 vgasnet_AMRequestLongAsync0
/** Sends a Long request with 1 argument. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync1 vgasnet_AMRequestLongAsync1
/** Sends a Long request with 2 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync2 vgasnet_AMRequestLongAsync2
/** Sends a Long request with 3 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync3 vgasnet_AMRequestLongAsync3
/** Sends a Long request with 4 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync4 vgasnet_AMRequestLongAsync4
/** Sends a Long request with 5 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync5 vgasnet_AMRequestLongAsync5
/** Sends a Long request with 6 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync6 vgasnet_AMRequestLongAsync6
/** Sends a Long request with 7 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync7 vgasnet_AMRequestLongAsync7
/** Sends a Long request with 8 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync8 vgasnet_AMRequestLongAsync8
/** Sends a Long request with 9 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync9 vgasnet_AMRequestLongAsync9
/** Sends a Long request with 10 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync10 vgasnet_AMRequestLongAsync10
/** Sends a Long request with 11 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync11 vgasnet_AMRequestLongAsync11
/** Sends a Long request with 12 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync12 vgasnet_AMRequestLongAsync12
/** Sends a Long request with 13 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync13 vgasnet_AMRequestLongAsync13
/** Sends a Long request with 14 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync14 vgasnet_AMRequestLongAsync14
/** Sends a Long request with 15 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync15 vgasnet_AMRequestLongAsync15
/** Sends a Long request with 16 arguments. @see vgasnet_AMRequestLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMRequestLongAsync16 vgasnet_AMRequestLongAsync16

/** Sends a Short reply with 0 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort0 vgasnet_AMReplyShort0
/** Sends a Short reply with 1 argument. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort1 vgasnet_AMReplyShort1
/** Sends a Short reply with 2 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort2 vgasnet_AMReplyShort2
/** Sends a Short reply with 3 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort3 vgasnet_AMReplyShort3
/** Sends a Short reply with 4 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort4 vgasnet_AMReplyShort4
/** Sends a Short reply with 5 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort5 vgasnet_AMReplyShort5
/** Sends a Short reply with 6 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort6 vgasnet_AMReplyShort6
/** Sends a Short reply with 7 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort7 vgasnet_AMReplyShort7
/** Sends a Short reply with 8 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort8 vgasnet_AMReplyShort8
/** Sends a Short reply with 9 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort9 vgasnet_AMReplyShort9
/** Sends a Short reply with 10 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort10 vgasnet_AMReplyShort10
/** Sends a Short reply with 11 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort11 vgasnet_AMReplyShort11
/** Sends a Short reply with 12 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort12 vgasnet_AMReplyShort12
/** Sends a Short reply with 13 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort13 vgasnet_AMReplyShort13
/** Sends a Short reply with 14 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort14 vgasnet_AMReplyShort14
/** Sends a Short reply with 15 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort15 vgasnet_AMReplyShort15
/** Sends a Short reply with 16 arguments. @see vgasnet_AMReplyShortArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyShort16 vgasnet_AMReplyShort16

/** Sends a Medium reply with 0 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium0 vgasnet_AMReplyMedium0
/** Sends a Medium reply with 1 argument. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium1 vgasnet_AMReplyMedium1
/** Sends a Medium reply with 2 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium2 vgasnet_AMReplyMedium2
/** Sends a Medium reply with 3 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium3 vgasnet_AMReplyMedium3
/** Sends a Medium reply with 4 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium4 vgasnet_AMReplyMedium4
/** Sends a Medium reply with 5 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium5 vgasnet_AMReplyMedium5
/** Sends a Medium reply with 6 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium6 vgasnet_AMReplyMedium6
/** Sends a Medium reply with 7 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium7 vgasnet_AMReplyMedium7
/** Sends a Medium reply with 8 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium8 vgasnet_AMReplyMedium8
/** Sends a Medium reply with 9 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium9 vgasnet_AMReplyMedium9
/** Sends a Medium reply with 10 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium10 vgasnet_AMReplyMedium10
/** Sends a Medium reply with 11 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium11 vgasnet_AMReplyMedium11
/** Sends a Medium reply with 12 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium12 vgasnet_AMReplyMedium12
/** Sends a Medium reply with 13 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium13 vgasnet_AMReplyMedium13
/** Sends a Medium reply with 14 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium14 vgasnet_AMReplyMedium14
/** Sends a Medium reply with 15 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium15 vgasnet_AMReplyMedium15
/** Sends a Medium reply with 16 arguments. @see vgasnet_AMReplyMediumArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyMedium16 vgasnet_AMReplyMedium16

/** Sends a Long reply with 0 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong0 vgasnet_AMReplyLong0
/** Sends a Long reply with 1 argument. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong1 vgasnet_AMReplyLong1
/** Sends a Long reply with 2 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong2 vgasnet_AMReplyLong2
/** Sends a Long reply with 3 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong3 vgasnet_AMReplyLong3
/** Sends a Long reply with 4 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong4 vgasnet_AMReplyLong4
/** Sends a Long reply with 5 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong5 vgasnet_AMReplyLong5
/** Sends a Long reply with 6 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong6 vgasnet_AMReplyLong6
/** Sends a Long reply with 7 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong7 vgasnet_AMReplyLong7
/** Sends a Long reply with 8 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong8 vgasnet_AMReplyLong8
/** Sends a Long reply with 9 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong9 vgasnet_AMReplyLong9
/** Sends a Long reply with 10 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong10 vgasnet_AMReplyLong10
/** Sends a Long reply with 11 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong11 vgasnet_AMReplyLong11
/** Sends a Long reply with 12 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong12 vgasnet_AMReplyLong12
/** Sends a Long reply with 13 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong13 vgasnet_AMReplyLong13
/** Sends a Long reply with 14 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong14 vgasnet_AMReplyLong14
/** Sends a Long reply with 15 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong15 vgasnet_AMReplyLong15
/** Sends a Long reply with 16 arguments. @see vgasnet_AMReplyLongArgs, GASNet-1 specification 1.8 */
#define gasnet_AMReplyLong16 vgasnet_AMReplyLong16

#endif
