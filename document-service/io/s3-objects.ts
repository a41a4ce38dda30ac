/**
 * Objects in an S3-compatible store at any endpoint, addressed by path. Every request is signed (Signature Version 4)
 * with the hash of its body, so the store refuses damaged bytes. Each object is written in one request. A name is
 * written only once, so the store's rules for concurrent writes do not matter.
 */

import { createHash } from "node:crypto";
import { AwsClient } from "aws4fetch";

import { StartError } from "../../shared/process/lifecycle.ts";
import type { ObjectStore } from "../ports.ts";
import { nameAt, pathOf } from "./object-paths.ts";

export type S3Options = {
  readonly s3Url: string;
  readonly s3Region: string;
  readonly s3Bucket: string;
  readonly s3AccessKeyId: string;
  readonly s3SecretAccessKey: string;
};

const TRANSFER_MS_MAX = 60_000;
/** The start of the service waits for this. */
const LOOK_MS_MAX = 10_000;

/**
 * All objects lie under `prefix`, which ends in a slash. Creates the bucket if it is missing. Throws a StartError if
 * the store cannot be used.
 */
export async function s3Objects(options: S3Options, prefix: string): Promise<ObjectStore> {
  const client = new AwsClient({
    accessKeyId: options.s3AccessKeyId,
    secretAccessKey: options.s3SecretAccessKey,
    region: options.s3Region,
    service: "s3",
    retries: 0,
  });
  const bucket = `${options.s3Url.replace(/\/+$/, "")}/${encodeURIComponent(options.s3Bucket)}`;

  async function ask(what: string, method: string, url: string, body?: Uint8Array, msMax = TRANSFER_MS_MAX): Promise<Response> {
    const headers = {
      "x-amz-content-sha256": createHash("sha256")
        .update(body ?? "")
        .digest("hex"),
      ...(body === undefined ? {} : { "content-type": "application/octet-stream" }),
    };
    try {
      return await client.fetch(url, {
        method,
        headers,
        signal: AbortSignal.timeout(msMax),
        ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
      });
    } catch (cause) {
      throw new Error(`${what} failed: check that ${options.s3Url} is reachable`, { cause });
    }
  }
  const urlOf = (name: string) => `${bucket}/${(prefix + pathOf(name)).split("/").map(encodeURIComponent).join("/")}`;

  await makeBucket();
  return {
    write: async (name, bytes) => {
      const response = await ask(`writing ${name}`, "PUT", urlOf(name), bytes);
      if (!response.ok) throw await refusal(`writing ${name}`, response);
      await response.arrayBuffer(); // An empty body must be read too, or the connection is not reused.
    },
    read: async (name) => {
      const response = await ask(`reading ${name}`, "GET", urlOf(name));
      if (response.ok) return new Uint8Array(await response.arrayBuffer());
      const text = await response.text();
      if (response.status === 404 && textsOf(text, "Code")[0] === "NoSuchKey") return undefined;
      throw new Error(`reading ${name} was refused: ${response.status} ${textsOf(text, "Code")[0] ?? ""}`);
    },
    list: async () => {
      const sizes = new Map<string, number>();
      for (let token: string | undefined = ""; token !== undefined;) {
        const query = new URLSearchParams({ "list-type": "2", prefix, ...(token === "" ? {} : { "continuation-token": token }) });
        const response = await ask("listing the snapshots", "GET", `${bucket}?${query.toString().replaceAll("+", "%20")}`);
        if (!response.ok) throw await refusal("listing the snapshots", response);
        const text = await response.text();
        const bytes = textsOf(text, "Size");
        textsOf(text, "Key").forEach((key, index) => sizes.set(nameAt(key.slice(prefix.length)), Number(bytes[index] ?? 0)));
        token = textsOf(text, "IsTruncated")[0] === "true" ? textsOf(text, "NextContinuationToken")[0] : undefined;
      }
      return sizes;
    },
    remove: async (name) => {
      const response = await ask(`removing ${name}`, "DELETE", urlOf(name));
      if (!response.ok && response.status !== 404) throw await refusal(`removing ${name}`, response);
      await response.arrayBuffer();
    },
    sweep: () => Promise.resolve(0), // S3 stores a complete object or none.
  };

  async function makeBucket(): Promise<void> {
    const where = `the S3 store at ${options.s3Url}`;
    const askNow = (method: string): Promise<Response> =>
      ask("looking for the bucket", method, bucket, undefined, LOOK_MS_MAX).catch((cause: unknown) => {
        throw new StartError(`${where} does not answer: start it, or set COROOM_S3_URL to a store that runs`, { cause });
      });
    const found = await askNow("HEAD");
    if (found.ok) return;
    if (found.status >= 500) throw new StartError(`${where} answers with ${found.status}: repair it, and start again`);
    if (found.status !== 404) {
      throw new StartError(
        `${where} refuses the bucket ${options.s3Bucket} with ${found.status}: check COROOM_S3_BUCKET, COROOM_S3_ACCESS_KEY_ID, COROOM_S3_SECRET_ACCESS_KEY and COROOM_S3_REGION`,
      );
    }
    const made = await askNow("PUT");
    const text = await made.text();
    if (!made.ok && !["BucketAlreadyOwnedByYou", "BucketAlreadyExists"].includes(textsOf(text, "Code")[0] ?? "")) {
      throw new StartError(
        `${where} has no bucket ${options.s3Bucket} and does not create it (${made.status} ${textsOf(text, "Code")[0] ?? ""}). Create it, or set COROOM_S3_BUCKET to another bucket`,
      );
    }
  }
}

async function refusal(what: string, response: Response): Promise<Error> {
  return new Error(`${what} was refused: ${response.status} ${textsOf(await response.text(), "Code")[0] ?? ""}`);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The contents of every element with this name. S3's answers are flat, so no XML parser is needed. */
function textsOf(xml: string, element: string): string[] {
  return [...xml.matchAll(new RegExp(`<${element}>([^<]*)</${element}>`, "g"))].map(([, text = ""]) =>
    text.replace(/&(#x?)?([0-9A-Za-z]+);/g, decodeEntity),
  );
}

function decodeEntity(whole: string, number: string | undefined, name: string): string {
  if (number === undefined) return ENTITIES[name] ?? whole;
  return String.fromCodePoint(Number.parseInt(name, number === "#x" ? 16 : 10));
}
