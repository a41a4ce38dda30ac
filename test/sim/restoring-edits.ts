/**
 * Edits that restore an earlier state of a simulated document. Like a reverting edit of Yjs, such an edit removes the
 * texts that its maker knew and that the earlier state does not show, and shows the removed texts of the earlier state
 * again. Texts that its maker did not know stay.
 */

import { concatenated, keystroke, keystrokesIn, textsIn } from "./keystrokes.ts";

/** Author number of these edits, which no tab has. Each has an index of its own. */
const RESTORER = 250;
const GROUP_BYTES = 4;
const [CURRENT, EARLIER] = [1, 2];

/** A content, by its bytes and a check number. */
type ContentStamp = { readonly bytes: number; readonly check: number };
type Restoring = { readonly current: ContentStamp; readonly earlier: ContentStamp };
/** The numbers of texts. */
type Shown = ReadonlySet<number>;

export function isRestorer(author: number | undefined): boolean {
  return author === RESTORER;
}

/** Undefined: both contents show the same texts. */
export function restoringEdit(index: number, current: Uint8Array, earlier: Uint8Array): Uint8Array | undefined {
  if (showsSame(shownIn(current), shownIn(earlier))) return undefined;
  return concatenated([keystroke({ author: RESTORER, index }), encoded(current, CURRENT), encoded(earlier, EARLIER)]);
}

/** Undefined: another edit. */
export function restoringOf(payload: Uint8Array): Restoring | undefined {
  if (!isRestorer(payload[0]) || payload.byteLength !== 3 * GROUP_BYTES) return undefined;
  const at = (group: number): ContentStamp => {
    const [high, low, check] = payload.subarray(group * GROUP_BYTES);
    return { bytes: (high! * 256 + low!) * GROUP_BYTES, check: check! };
  };
  return { current: at(1), earlier: at(2) };
}

/** Whether the content begins with the stamped one. */
export function hasStamped(content: Uint8Array, { bytes, check }: ContentStamp): boolean {
  return bytes <= content.byteLength && checkOf(content.subarray(0, bytes)) === check;
}

export function showsSame(one: Shown, other: Shown): boolean {
  return one.size === other.size && [...one].every((text) => other.has(text));
}

/** The texts that a content shows, after all its edits. */
export function shownIn(content: Uint8Array): Shown {
  const after = new Map<number, Shown>([[0, new Set()]]);
  let [shown, bytes]: [Shown, number] = [new Set(), 0];
  for (const text of textsIn(content)) {
    const restoring = restoringOf(text);
    shown = restoring === undefined ? new Set([...shown, numberOf(text)]) : restored(shown, restoring, after);
    bytes += text.byteLength;
    after.set(bytes, shown);
  }
  return shown;
}

function restored(shown: Shown, { current, earlier }: Restoring, after: ReadonlyMap<number, Shown>): Shown {
  const [known, wanted] = [after.get(current.bytes) ?? shown, after.get(earlier.bytes) ?? shown];
  return new Set([...[...shown].filter((text) => wanted.has(text) || !known.has(text)), ...[...wanted].filter((text) => !known.has(text))]);
}

function numberOf(text: Uint8Array): number {
  const [{ author, index }] = keystrokesIn(text) as [ReturnType<typeof keystrokesIn>[number]];
  return author * 65_536 + index;
}

/** The last byte is not 0, so the group is no keystroke. */
function encoded(content: Uint8Array, last: number): Uint8Array {
  const groups = content.byteLength / GROUP_BYTES;
  return Uint8Array.of(groups >> 8, groups & 255, checkOf(content), last);
}

function checkOf(content: Uint8Array): number {
  return content.reduce((check, byte) => (check * 31 + byte + 1) % 251, 7);
}
