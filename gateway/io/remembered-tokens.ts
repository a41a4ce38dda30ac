/** Checks a token once where it is shown again and again. By its digest: tokens themselves are not held in memory. */

import { createHash } from "node:crypto";

import type { Clock } from "../../shared/clock.ts";
import { KnownTokens, type KnownTokensOptions } from "../sessions/known-tokens.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Tokens } from "../ports.ts";

export function rememberedTokens(tokens: Tokens, options: KnownTokensOptions, { clock, metrics }: { clock: Clock; metrics: Pick<GatewayMetrics, "tokenChecks"> }): Tokens {
  const known = new KnownTokens(options);
  let isSweeping = false;
  const sweepLater = (): void => {
    isSweeping = known.size > 0;
    if (isSweeping) clock.after(options.knownTokenMsMax, sweep);
  };
  const sweep = (): void => {
    known.receiveTick(clock.now());
    sweepLater();
  };
  return {
    verify: async (token) => {
      const digest = createHash("sha256").update(token).digest("base64");
      const identity = known.find(digest, clock.now());
      metrics.tokenChecks.inc({ outcome: identity === undefined ? "checked" : "known" });
      if (identity !== undefined) return { kind: "valid", identity };
      const verdict = await tokens.verify(token);
      if (verdict.kind === "valid") known.add(digest, verdict.identity, clock.now());
      if (!isSweeping) sweepLater();
      return verdict;
    },
  };
}
