/** For how long a server asks to be left alone, in milliseconds. 0: it does not say, or not in seconds. */
export function retryAfterMsOf(header: string | null | undefined): number {
  return /^\d{1,9}$/.test(header ?? "") ? Number(header) * 1000 : 0;
}
