/**
 * Requests of `coroom mcp` to a gateway. A request that the gateway cannot answer right now is repeated after the pause
 * that the answer names. Every other failure is a DocumentError with the gateway's message.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { z } from "zod";

export class DocumentError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type GatewayReply = {
  readonly status: number;
  readonly bytes: Uint8Array;
  readonly seq: number | undefined;
  readonly etag: string;
};
export type GatewayRequest = {
  readonly method?: "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
};

const Refusal = z.looseObject({ error: z.string(), message: z.string() });
const TRIES_MAX = 6;
const PAUSE_SECONDS = 1;
const REPEATED: ReadonlySet<number> = new Set([429, 503]);

export class DocumentsClient {
  readonly #url: string;
  readonly #token: () => Promise<string>;

  constructor(url: string, token: () => Promise<string>) {
    this.#url = url;
    this.#token = token;
  }

  /** `path`: after `/v1/rooms`. Answers with the status 200 or 304. */
  async ask(path: string, request: GatewayRequest = {}): Promise<GatewayReply> {
    for (let tries = 1; ; tries += 1) {
      const response = await this.#send(path, request);
      if (!REPEATED.has(response.status) || tries === TRIES_MAX) return answerOf(response);
      await response.body?.cancel();
      await sleep(1_000 * Number(response.headers.get("retry-after") ?? PAUSE_SECONDS));
    }
  }

  async #send(path: string, { headers = {}, method, body }: GatewayRequest): Promise<Response> {
    try {
      return await fetch(new URL(`/v1/rooms${path}`, this.#url), {
        method: method ?? "GET",
        headers: { ...headers, authorization: `Bearer ${await this.#token()}` },
        ...(body === undefined ? {} : { body: Buffer.from(body) }),
      });
    } catch (cause) {
      if (!(cause instanceof TypeError)) throw cause; // fetch throws TypeError for every network failure.
      throw new DocumentError(0, `no gateway answers at ${this.#url}. Start Coroom, or set --url`);
    }
  }
}

async function answerOf(response: Response): Promise<GatewayReply> {
  const { status, headers } = response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (status !== 200 && status !== 304) throw new DocumentError(status, messageOf(status, new TextDecoder().decode(bytes)));
  const seq = headers.get("x-coroom-seq");
  return { status, bytes, seq: seq === null ? undefined : Number(seq), etag: headers.get("etag") ?? "" };
}

function messageOf(status: number, text: string): string {
  try {
    return Refusal.parse(JSON.parse(text)).message;
  } catch {
    return `the server answered HTTP ${status}. Set --url to the address of a gateway`; // No gateway's error.
  }
}
