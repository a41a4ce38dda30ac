/**
 * Whether what this gateway sends reaches its clients so late that it is to take no more of them: they go to another, and
 * its own stay as long as they like. It takes a while to be believed either way, and more to be believed well: a
 * balancer that sent everybody here and there again would make it worse. Rules OUH1 to OUH3.
 */

import type { Millis } from "../../shared/ids.ts";

/** 0: it is well whatever the time. */
export type OutboundHealthOptions = { readonly outboundP99MsMax: number };

const DEGRADED_AFTER_MS = 5_000;
const WELL_AFTER_MS = 10_000;
/** Of what it may be; less is well again. */
const WELL_SHARE = 1 / 2;

export class OutboundHealth {
  readonly #options: OutboundHealthOptions;
  #isDegraded = false;
  /** Since when it looks otherwise than is believed. */
  #otherwiseSince: Millis | undefined;

  constructor(options: OutboundHealthOptions) {
    this.#options = options;
  }

  get isDegraded(): boolean {
    return this.#isDegraded;
  }

  /** Of the last moments; to be told at a steady pace. Whether what is believed has changed. */
  receiveP99(p99Ms: number, now: Millis): boolean {
    const { outboundP99MsMax: max } = this.#options;
    const isOtherwise = this.#isDegraded ? p99Ms < max * WELL_SHARE : max > 0 && p99Ms > max;
    if (!isOtherwise) {
      this.#otherwiseSince = undefined;
      return false;
    }
    this.#otherwiseSince ??= now;
    if (now - this.#otherwiseSince < (this.#isDegraded ? WELL_AFTER_MS : DEGRADED_AFTER_MS)) return false;
    this.#isDegraded = !this.#isDegraded;
    this.#otherwiseSince = undefined;
    return true;
  }
}
