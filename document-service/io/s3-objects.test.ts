import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { expect, test } from "vitest";

import { s3Objects } from "./s3-objects.ts";

const optionsAt = (s3Url: string) => ({
  s3Url,
  s3Region: "us-east-1",
  s3Bucket: "documents",
  s3AccessKeyId: "key",
  s3SecretAccessKey: "secret",
});

test.each<[string, Readonly<Record<string, { status: number; body?: string }>>, string]>([
  ["whose keys are refused", { HEAD: { status: 403 } }, "COROOM_S3_SECRET_ACCESS_KEY"],
  ["of another region", { HEAD: { status: 301 } }, "COROOM_S3_REGION"],
  [
    "without the bucket, that does not create it",
    { HEAD: { status: 404 }, PUT: { status: 403, body: "<Error><Code>AccessDenied</Code></Error>" } },
    "set COROOM_S3_BUCKET",
  ],
  ["that reports a failure", { HEAD: { status: 503 } }, "repair it"],
])("[S3O1] a store %s stops the start, and the error names the remedy", async (_, answers, advice) => {
  const server = createServer(({ method }, response) => {
    const { status, body = "" } = answers[method ?? ""]!;
    response.writeHead(status).end(body);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const opening = s3Objects(optionsAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), "snapshots/");
    await expect(opening).rejects.toMatchObject({ name: "StartError", message: expect.stringContaining(advice) });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test.each(["http://127.0.0.1:9", "s3.example"])("[S3O2] an address without an S3 store is refused with the remedy too: %s", async (url) => {
  await expect(s3Objects(optionsAt(url), "snapshots/")).rejects.toMatchObject({
    name: "StartError",
    message: expect.stringContaining("set COROOM_S3_URL"),
  });
});
