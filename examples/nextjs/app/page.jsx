/** A server component: it knows the user, and renders the page that the browser completes. */

import { Notes } from "./notes.jsx";

export default async function Page({ searchParams }) {
  const { user = "guest" } = await searchParams; // In production: from the session of your login.
  return (
    <main>
      <h1>Notes</h1>
      <Notes user={user} url={process.env.COROOM_URL ?? "ws://127.0.0.1:8080"} />
    </main>
  );
}
