/** What somebody may not do for a time, and the reason, where whoever imposed it gave one. */
export function because(refusal: string, { reason }: { readonly reason: string }): string {
  return reason === "" ? refusal : `${refusal}: ${reason}`;
}
