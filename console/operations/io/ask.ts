/** Asks the gateway that served the page. Whatever comes of it is a value, with the words that the gateway has for it. */

export type Asked<Body> =
  | { readonly kind: "answered"; readonly body: Body }
  /** `status` 401 and 403: the pass or token is not good for it. */
  | { readonly kind: "refused"; readonly status: number; readonly error: string; readonly message: string }
  | { readonly kind: "too-fast"; readonly waitMs: number }
  | { readonly kind: "unreachable" };

/** A gateway that lives answers a question within this, without NATS too. */
const ANSWER_MS_MAX = 8_000;
/** A room is moved within this, or never. */
const DEED_MS_MAX = 20_000;

export type Ask = <Body>(path: string, body?: object) => Promise<Asked<Body>>;

/** `pass`: in the header, never in the address, which servers and browsers write down. */
export function askerWith(pass: string): Ask {
  return async <Body>(path: string, body?: object): Promise<Asked<Body>> => {
    try {
      const answer = await fetch(`/v1/admin${path}`, {
        cache: "no-store",
        headers: { authorization: `Bearer ${pass}` },
        signal: AbortSignal.timeout(body === undefined ? ANSWER_MS_MAX : DEED_MS_MAX),
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      });
      if (answer.status === 429) return { kind: "too-fast", waitMs: 1_000 * Number(answer.headers.get("retry-after") ?? 1) };
      const told: unknown = await answer.json();
      if (answer.ok) return { kind: "answered", body: told as Body };
      const { error = "", message = `The gateway answered ${answer.status}.` } = told as { error?: string; message?: string };
      return { kind: "refused", status: answer.status, error, message };
    } catch (problem) {
      console.warn(problem); // No network, no answer in time, or one that is no gateway's.
      return { kind: "unreachable" };
    }
  };
}
