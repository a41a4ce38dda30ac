/**
 * News too long for one message, or one frame, are told as several, each of which stands for itself. What a room shows is
 * bounded; what was taken back of it since it was last told is not.
 */

import { inParts } from "./in-parts.ts";
import { encodeNews, type Participant, type PresenceField, type PresenceNews } from "./wire/presence.ts";

/** Of one message, but for a few bytes. NATS takes a megabyte. */
const NEWS_BYTES_MAX = 256 * 1024;
/** Beside the texts and the value, which are as long as they are. Texts have up to three bytes a character. */
const PARTICIPANT_BYTES = 16;
const FIELD_BYTES = 8;
const STATE_BYTES = 8;
const NUMBER_BYTES = 8;
const BYTES_PER_CODE_UNIT = 3;

const NO_NEWS: PresenceNews = { whole: false, present: [], gone: [], states: [] };

/** Not of the whole. One, nearly always; else in the order in which they are to be told. */
export function encodeInParts(news: PresenceNews): Uint8Array[] {
  const bytes = encodeNews(news);
  return bytes.byteLength <= NEWS_BYTES_MAX ? [bytes] : cut(news).map(encodeNews);
}

/** Who comes is told of before what they show. */
function cut({ gone, present, states }: PresenceNews): PresenceNews[] {
  const pieces = states.flatMap(({ number, fields }) =>
    inParts(fields, bytesOfField, NEWS_BYTES_MAX).map((some) => ({ number, fields: some })),
  );
  return [
    ...inParts(gone, () => NUMBER_BYTES, NEWS_BYTES_MAX).map((some) => ({ ...NO_NEWS, gone: some })),
    ...inParts(present, bytesOfParticipant, NEWS_BYTES_MAX).map((some) => ({ ...NO_NEWS, present: some })),
    ...inParts(pieces, ({ fields }) => STATE_BYTES + sum(fields.map(bytesOfField)), NEWS_BYTES_MAX).map((some) => ({
      ...NO_NEWS,
      states: some,
    })),
  ];
}

function bytesOfParticipant({ client, user, name }: Participant): number {
  return PARTICIPANT_BYTES + (client.length + user.length + name.length) * BYTES_PER_CODE_UNIT;
}

function bytesOfField({ name, value }: PresenceField): number {
  return FIELD_BYTES + name.length * BYTES_PER_CODE_UNIT + value.byteLength;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, some) => total + some, 0);
}
