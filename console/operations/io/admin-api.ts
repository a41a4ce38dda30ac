/**
 * Sends requests to the gateway that served the page. Every outcome is a value; a rejection contains the gateway's
 * message.
 */

export type AdminResponse<Body> =
  | { readonly kind: "answered"; readonly body: Body }
  /** `status` 401 and 403: the pass or token does not permit the request. */
  | { readonly kind: "refused"; readonly status: number; readonly error: string; readonly message: string }
  | { readonly kind: "too-fast"; readonly waitMs: number }
  | { readonly kind: "unreachable" };

/** A live gateway answers a query within this time, even without NATS. */
const ANSWER_MS_MAX = 8_000;
/** A room move ends within this time. */
const ACTION_MS_MAX = 20_000;

export type AdminApi = <Body>(path: string, body?: object) => Promise<AdminResponse<Body>>;

/** `pass`: sent in a header, never in the address, because servers and browsers record addresses. */
export function adminApi(pass: string): AdminApi {
  return async <Body>(path: string, body?: object): Promise<AdminResponse<Body>> => {
    try {
      const answer = await fetch(`/v1/admin${path}`, {
        cache: "no-store",
        headers: { authorization: `Bearer ${pass}` },
        signal: AbortSignal.timeout(body === undefined ? ANSWER_MS_MAX : ACTION_MS_MAX),
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      });
      if (answer.status === 429) return { kind: "too-fast", waitMs: 1_000 * Number(answer.headers.get("retry-after") ?? 1) };
      const data: unknown = await answer.json();
      if (answer.ok) return { kind: "answered", body: data as Body };
      const { error = "", message = `The gateway answered with status ${answer.status}.` } = data as { error?: string; message?: string };
      return { kind: "refused", status: answer.status, error, message };
    } catch (problem) {
      console.warn(problem); // No network, no answer in time, or the answer is not JSON.
      return { kind: "unreachable" };
    }
  };
}
