/** The first byte of every binary message on NATS. A number is never reused: old records stay in the log. */
export const Tag = {
  // on edits.out, to every gateway of the room
  /** Without the epoch before: of earlier builds. */
  loneEpochRecord: 0x01,
  editsRecord: 0x02,
  beacon: 0x03,
  tentative: 0x04,
  saving: 0x05,
  deletedRecord: 0x06,
  epochRecord: 0x07,
  // to the owner, of edits
  edits: 0x10,
  catchUpRequest: 0x11,
  resubmit: 0x12,
  firstEdit: 0x13,
  doubt: 0x14,
  // to one gateway
  catchUp: 0x20,
  acked: 0x21,
  refused: 0x22,
  notFirst: 0x23,
  // to the owner, of presence
  members: 0x30,
  presenceStates: 0x31,
  presenceSync: 0x32,
  // on presence.out, to every gateway of the room
  presenceNews: 0x40,
  presenceHead: 0x41,
  // on presence.gateway, to one gateway
  membersHeard: 0x50,
  presenceWhole: 0x51,
  membersMissed: 0x52,
  // to all gateways
  countsReport: 0x60,
} as const;
