/** Counts the unacknowledged edits that all rooms of a gateway hold together, and limits their bytes. */

export class UnackedBudget {
  readonly #bytesMax: number;
  edits = 0;
  bytes = 0;

  constructor(options: { bytesMax: number }) {
    this.#bytesMax = options.bytesMax;
  }

  hasRoomFor(bytes: number): boolean {
    return this.bytes + bytes <= this.#bytesMax;
  }

  count(edits: number, bytes: number): void {
    this.edits += edits;
    this.bytes += bytes;
  }
}
