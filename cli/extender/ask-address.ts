import { type IncomingMessage, request } from 'node:http';
import { readText } from '../../kube/calls.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';

/** Timeout in seconds; it usually responds in a few hundred milliseconds. */
const DEADLINE = 5;

/**
 * Queries `GET /explain` about a pod at an address from the user, instead of the extender found through the API server.
 * @param extender --extender
 * @param pod namespace/name
 * @throws CliError if the address is malformed or does not respond
 */
export async function askAddress(extender: string, pod: string): Promise<unknown> {
  const url = explainUrl(extender);
  url.searchParams.set('pod', pod);
  const failed = (why: string) => new CliError(EXIT.unreachable, `cannot ask the extender at ${url.origin}: ${why}`);
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(url, { signal: AbortSignal.timeout(DEADLINE * 1000) }, resolve)
        .on('error', reject)
        .end();
    });
    const answer = await readText(response);
    if (response.statusCode !== 200) throw failed(answer.trim().split('\n')[0] || `${response.statusCode}`);
    return JSON.parse(answer) as unknown;
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw failed(error instanceof SyntaxError ? 'the answer is not JSON' : (error as Error).message);
  }
}

/** The URL of /explain. @throws CliError if the text is not the address of an extender */
export function explainUrl(extender: string): URL {
  const text = `${extender.replace(/\/+$/, '')}/explain`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:') return url;
  throw usageError(`--extender ${extender}: expected a URL that begins with http://, such as http://localhost:8082`);
}
