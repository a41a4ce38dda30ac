/** How often each line may send, for a model server that keeps to it as a gateway does. Edits are not counted. */

import type { Millis } from "../../shared/ids.ts";
import { TokenBucket } from "../../shared/token-bucket.ts";
import type { ClientFrame, Limits } from "../../shared/wire/frames.ts";
import type { Line } from "./model-line.ts";

type Buckets = { readonly presence: TokenBucket; readonly controls: TokenBucket };

export class ModelRates {
  readonly #buckets = new WeakMap<Line, Buckets>();

  /** Of presence a frame too many is passed over; any other ends the line. */
  take(line: Line, frame: ClientFrame, limits: Limits, now: Millis): "taken" | "passed-over" | "too-fast" {
    const { presence, controls } = this.#of(line, limits, now);
    if (frame.type === "edit") return "taken";
    if (frame.type === "presence") return presence.take(now) ? "taken" : "passed-over";
    return controls.take(now) ? "taken" : "too-fast";
  }

  #of(line: Line, { presenceBurst, presencePerSecond, controlBurst, controlsPerSecond }: Limits, now: Millis): Buckets {
    const known = this.#buckets.get(line);
    if (known !== undefined) return known;
    const begun = {
      presence: new TokenBucket({ burst: presenceBurst, perSecond: presencePerSecond }, now),
      controls: new TokenBucket({ burst: controlBurst, perSecond: controlsPerSecond }, now),
    };
    this.#buckets.set(line, begun);
    return begun;
  }
}
