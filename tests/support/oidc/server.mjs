// A real OpenID provider on loopback: node server.mjs PORT REDIRECT_URI CLIENT_SECRET
// Whoever types an address into its login form is that person; one that begins with "unverified" is not verified.
import Provider from "oidc-provider";

const [port, redirect, secret] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: "headscope",
    client_secret: secret,
    redirect_uris: [redirect],
    post_logout_redirect_uris: [redirect],
  }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  conformIdTokenClaims: false, // Streamlit reads the identity token, and asks no further
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: id, email_verified: !id.startsWith("unverified"), name: id }),
  }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
