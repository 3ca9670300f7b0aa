/** Creates a token, and prints a command that calls the service. */
export async function printCall(orchestrator, url) {
  const { token } = await orchestrator.tokens.create({ name: 'example', scopes: ['execute:ensembles'] });
  console.log(`Listening on ${url}. Try:

curl ${url}/api/v1/execute/ensemble/greet \\
  -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' \\
  -d '{"input":{"who":"Ada"}}'`);
}
