/** The part of `coroom doctor` that examines the store of snapshots and history. It changes nothing there. */

import { type DoctorFinding, ok } from "./findings.ts";
import type { StartConfig } from "./settings.ts";

/** Throws a StartError with the remedy. Settings without an address are reported by the check of the settings. */
export async function checkStore({ roles, snapshotsStore, postgresUrl }: StartConfig): Promise<readonly DoctorFinding[]> {
  if (!roles.includes("document-service") || snapshotsStore !== "postgres" || postgresUrl === "") return [];
  const { checkPostgres } = await import("../document-service/io/postgres-connection.ts");
  const { where, hasTable } = await checkPostgres(postgresUrl);
  return [
    ok(
      "store",
      `PostgreSQL at ${where} ${hasTable ? "can be used" : "has no objects yet. The first document service begins with its table"}`,
    ),
  ];
}
