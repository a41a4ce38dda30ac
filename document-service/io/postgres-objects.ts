/**
 * Objects as rows of a table of PostgreSQL, one row each, so that a write is one statement and an object exists
 * completely or not at all. A write ends when it is on disk, even if the database confirms others earlier
 * (`synchronous_commit`). Objects are read in parts, because the library decodes values as text.
 */

import type { ObjectStore } from "../ports.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/** PostgreSQL accepts messages below 1 GiB. The rest is for the other parts of the message. */
const OBJECT_BYTES_MAX = 1023 * 1024 ** 2;
/** As text in hexadecimal: 8 MiB, which hold the event loop for about 10 ms. */
const PART_BYTES = 4 * 1024 ** 2;
const LISTED_AT_ONCE = 5_000;
/** Changes the setting for this statement only, also through a connection pooler. */
const DURABLE = "WITH durable AS (SELECT set_config('synchronous_commit', 'on', true))";

/** `bucket`: separates the objects of one store from all others. */
export function postgresObjects({ ask }: PostgresConnection, bucket: string): ObjectStore {
  const readPart = async (name: string, from: number): Promise<{ part: Buffer; total: number } | undefined> => {
    const [row] = await ask(
      `reading ${name}`,
      "SELECT substring(bytes FROM $3::integer FOR $4::integer), octet_length(bytes) FROM coroom_objects WHERE bucket = $1 AND name = $2",
      [bucket, name, from + 1, PART_BYTES],
    );
    return row && { part: row[0] as Buffer, total: row[1] as number };
  };
  return {
    write: async (name, bytes) => {
      if (bytes.byteLength > OBJECT_BYTES_MAX)
        throw new Error(
          `${name} has ${bytes.byteLength} bytes, and PostgreSQL takes at most ${OBJECT_BYTES_MAX} at once: use another store`,
        );
      await ask(
        `writing ${name}`,
        `${DURABLE} INSERT INTO coroom_objects (bucket, name, bytes) SELECT $1::text, $2::text, $3::bytea FROM durable ON CONFLICT (bucket, name) DO UPDATE SET bytes = excluded.bytes`,
        [bucket, name, bytes],
      );
    },
    read: async (name) => {
      let bytes: Uint8Array | undefined;
      for (let at = 0; bytes === undefined || at < bytes.byteLength; at += PART_BYTES) {
        const found = await readPart(name, at);
        if (found === undefined) return undefined; // Missing, or removed meanwhile.
        bytes ??= new Uint8Array(found.total);
        bytes.set(found.part, at);
      }
      return bytes;
    },
    list: async () => {
      const sizes = new Map<string, number>();
      for (let after = "", found = LISTED_AT_ONCE; found === LISTED_AT_ONCE;) {
        const rows = await ask(
          "listing the objects",
          "SELECT name, octet_length(bytes) FROM coroom_objects WHERE bucket = $1 AND name > $2 ORDER BY name LIMIT $3",
          [bucket, after, LISTED_AT_ONCE],
        );
        for (const [name, bytes] of rows) sizes.set((after = name as string), bytes as number);
        found = rows.length;
      }
      return sizes;
    },
    remove: async (name) => {
      await ask(`removing ${name}`, `${DURABLE} DELETE FROM coroom_objects USING durable WHERE bucket = $1 AND name = $2`, [bucket, name]);
    },
    sweep: () => Promise.resolve(0), // A statement stores a complete object or none.
  };
}
