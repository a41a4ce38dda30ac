/**
 * Which edits this page's application has already: what was made here, under each id that the page has had, and what
 * pages before it sent and this one was given back. Of theirs only those: what else they made is as anybody's. Rules OWE1, OWE2.
 */

import type { ClientId } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";

/** `after < counter <= through`. */
type Run = { readonly after: Counter; through: Counter };

export class OwnEdits {
  readonly #runs = new Map<ClientId, Run[]>();

  /** `through`: Infinity for all that are still to be made. */
  add(client: ClientId, after: Counter, through: Counter): void {
    const runs = this.#runs.get(client) ?? [];
    this.#runs.set(client, runs);
    const before = runs.find((run) => run.after <= after && after <= run.through);
    if (before === undefined) runs.push({ after, through });
    else before.through = Math.max(before.through, through);
  }

  has(client: ClientId, counter: Counter): boolean {
    return this.#runs.get(client)?.some(({ after, through }) => after < counter && counter <= through) ?? false;
  }
}
