/**
 * Splits a delta that is too long for one message, or one frame, into several. Each part is valid alone. The shown
 * fields of a room are limited, but the number of fields removed since the last delta is not.
 */

import { splitBySize } from "../collections/split-by-size.ts";
import { encodeDelta, type ParticipantEntry, type PresenceField, type PresenceDelta } from "../wire/presence.ts";

/** Maximum size of one message, except for a few bytes. NATS accepts one megabyte. */
const DELTA_BYTES_MAX = 256 * 1024;
/** Bytes in addition to the texts and the value, whose lengths vary. Texts have up to three bytes per character. */
const PARTICIPANT_BYTES = 16;
const FIELD_BYTES = 8;
const STATE_BYTES = 8;
const NUMBER_BYTES = 8;
const BYTES_PER_CODE_UNIT = 3;

const NO_NEWS: PresenceDelta = { snapshot: false, present: [], gone: [], states: [] };

/**
 * For deltas only, not for snapshots. Returns one delta in most cases, otherwise several in the order in which to
 * send them.
 */
export function encodeSplitDelta(delta: PresenceDelta): Uint8Array[] {
  const bytes = encodeDelta(delta);
  return bytes.byteLength <= DELTA_BYTES_MAX ? [bytes] : cut(delta).map(encodeDelta);
}

/** New participants come before their fields. */
function cut({ gone, present, states }: PresenceDelta): PresenceDelta[] {
  const pieces = states.flatMap(({ number, fields }) =>
    splitBySize(fields, bytesOfField, DELTA_BYTES_MAX).map((some) => ({ number, fields: some })),
  );
  return [
    ...splitBySize(gone, () => NUMBER_BYTES, DELTA_BYTES_MAX).map((some) => ({ ...NO_NEWS, gone: some })),
    ...splitBySize(present, bytesOfParticipant, DELTA_BYTES_MAX).map((some) => ({ ...NO_NEWS, present: some })),
    ...splitBySize(pieces, ({ fields }) => STATE_BYTES + sum(fields.map(bytesOfField)), DELTA_BYTES_MAX).map((some) => ({
      ...NO_NEWS,
      states: some,
    })),
  ];
}

function bytesOfParticipant({ client, user, name }: ParticipantEntry): number {
  return PARTICIPANT_BYTES + (client.length + user.length + name.length) * BYTES_PER_CODE_UNIT;
}

function bytesOfField({ name, value }: PresenceField): number {
  return FIELD_BYTES + name.length * BYTES_PER_CODE_UNIT + value.byteLength;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, some) => total + some, 0);
}
