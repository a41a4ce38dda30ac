/**
 * Why a pass over the log cannot go on. Whatever it was (boards that stand elsewhere than was thought, Redis
 * gone and back, an answer lost), the remedy is the same: forget everything and count again from the floor.
 */
export class Trouble extends Error {
  override readonly name = "Trouble";
  readonly reason: "stale" | "doubtful";

  constructor(reason: "stale" | "doubtful", message: string) {
    super(message);
    this.reason = reason;
  }
}
