/** Distinguishes one expected system error from all others. */
export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
}

/** The remedy for a folder that cannot be written: a full disk needs space, not other rights. */
export function folderAdvice(error: unknown): string {
  return isErrno(error, "ENOSPC", "EDQUOT") ? "The disk is full: free space on it" : "Make it writable for this user";
}
