/** Tokens as HTTP takes them: whoever is banned is refused like somebody whose token does not hold, and is kept out of rooms as on the socket. */

import type { SanctionsHost } from "../sanctions-host.ts";
import type { Tokens } from "../ports.ts";

export function unbannedTokens(tokens: Tokens, sanctions: Pick<SanctionsHost, "banOf" | "restriction">): Tokens {
  return {
    verify: async (token) => {
      const verdict = await tokens.verify(token);
      if (verdict.kind !== "valid") return verdict;
      const { tenant, user } = verdict.identity;
      const ban = sanctions.banOf(tenant, user);
      if (ban !== undefined) return { kind: "refused", why: `its bearer is banned for a time: ${ban.reason}` };
      return { kind: "valid", identity: { ...verdict.identity, restrictionIn: (room) => sanctions.restriction(tenant, user, room) } };
    },
  };
}
