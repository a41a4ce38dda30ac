/** Packs many edits into two buffers, because the transfer of thousands of small ones to a thread costs far more than their merge. */

export type PackedEdits = { readonly bytes: Uint8Array<ArrayBuffer>; readonly ends: Uint32Array<ArrayBuffer> };

export function pack(edits: readonly Uint8Array[]): PackedEdits {
  const bytes = new Uint8Array(edits.reduce((sum, edit) => sum + edit.byteLength, 0));
  const ends = new Uint32Array(edits.length);
  let end = 0;
  edits.forEach((edit, index) => {
    bytes.set(edit, end);
    end += edit.byteLength;
    ends[index] = end;
  });
  return { bytes, ends };
}

export function unpack({ bytes, ends }: PackedEdits): Uint8Array[] {
  return Array.from(ends, (end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}
