/** Tokens as HTTP takes them: whoever is banned is refused like somebody whose token does not hold, and is kept out of rooms as on the socket. What is no token at all is held against the address, as there. */

import { because } from "../limits/because.ts";
import type { Log } from "../../shared/log.ts";
import type { DisciplineHost } from "../limits/discipline-host.ts";
import type { SanctionsHost } from "../limits/sanctions-host.ts";
import type { Tokens } from "../ports.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import type { TokenVerdict } from "../sessions/identity.ts";

/** `from`: where it is shown. Never rejects. */
export type HttpTokens = { readonly verify: (token: string, from: ClientAddress | undefined) => Promise<TokenVerdict> };

export type HttpTokenPorts = {
  readonly tokens: Tokens;
  readonly sanctions: Pick<SanctionsHost, "banOf" | "banOfAddress" | "restriction">;
  readonly discipline: Pick<DisciplineHost, "receiveForgery">;
};

export function httpTokens({ tokens, sanctions, discipline }: HttpTokenPorts, { log }: { log: Log }): HttpTokens {
  /** It rejects for one reason only: the keys cannot be had. */
  const unchecked = (cause: unknown): TokenVerdict => {
    log.error({ cause }, "tokens cannot be checked: see whether the JWKS address answers with a key set");
    return { kind: "unchecked" };
  };
  return {
    verify: async (token, from) => {
      const banned = from === undefined ? undefined : sanctions.banOfAddress(from);
      if (banned !== undefined) return { kind: "refused", why: because("the address that it is shown from is banned for a time", banned) };
      const verdict = await tokens.verify(token).catch(unchecked);
      if (verdict.kind === "refused") discipline.receiveForgery(from);
      if (verdict.kind !== "valid") return verdict;
      const { tenant, user } = verdict.identity;
      const ban = sanctions.banOf(tenant, user);
      if (ban !== undefined) return { kind: "refused", why: because("its bearer is banned for a time", ban) };
      return { kind: "valid", identity: { ...verdict.identity, restrictionIn: (room) => sanctions.restriction(tenant, user, room) } };
    },
  };
}
