/** Checks a token once where it is shown again and again. By its digest: tokens themselves are not held in memory. */

import { hash } from "node:crypto";

import type { Clock } from "../../shared/clock.ts";
import { KnownTokens, type KnownTokensOptions } from "../sessions/known-tokens.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Tokens } from "../ports.ts";

/** They go when their time is up, and not with some later look: what is let go of after a quiet gateway has collected its garbage stays. */
const SWEEP_MS_MIN = 1_000;

export function rememberedTokens(
  tokens: Tokens,
  options: KnownTokensOptions,
  { clock, metrics }: { clock: Clock; metrics: Pick<GatewayMetrics, "tokenChecks"> },
): Tokens {
  const known = new KnownTokens(options);
  let isSweeping = false;
  const sweep = (): void => {
    const next = known.receiveTick(clock.now());
    isSweeping = next !== undefined;
    if (next !== undefined) clock.after(Math.max(SWEEP_MS_MIN, next - clock.now()), sweep);
  };
  return {
    verify: async (token) => {
      const digest = hash("sha256", token, "base64");
      const identity = known.find(digest, clock.now());
      metrics.tokenChecks.inc({ outcome: identity === undefined ? "checked" : "known" });
      if (identity !== undefined) return { kind: "valid", identity };
      const verdict = await tokens.verify(token);
      if (verdict.kind === "valid") known.add(digest, verdict.identity, clock.now());
      if (!isSweeping) sweep();
      return verdict;
    },
  };
}
