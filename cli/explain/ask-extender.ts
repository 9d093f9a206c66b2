import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import { NAMESPACE } from '../../model/names.ts';
import type { RefusalKind } from '../../model/placement/verdict.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';
import type { NodeOpinion, Opinions } from './opinion.ts';

const verdict = z.union([
  z.object({ node: z.string(), fits: z.literal(true), cpus: z.string(), numaNodes: z.array(z.number()) }),
  z.object({
    node: z.string(),
    fits: z.literal(false),
    kind: z.string().transform((kind) => kind as RefusalKind),
    text: z.string(),
    reason: z.string(),
    missing: z.number().optional(),
  }),
]);
const answer = z.object({ active: z.boolean(), nodes: z.array(verdict) });

/** The extender's Service as the API server proxies it. */
export const EXTENDER_PROXY = `/api/v1/namespaces/${NAMESPACE}/services/https:plumbline-scheduler-plugin:https/proxy`;

/** Seconds: it answers in a few hundred milliseconds, and without it there is another way. */
const DEADLINE = 5;

export interface ExtenderChoice {
  /** --extender: its address; undefined: through the API server. */
  readonly extender?: string | undefined;
  /** --extender-ca */
  readonly extenderCa?: string | undefined;
}

export type Asked = { readonly opinions: Opinions } | { readonly whyNot: string };

/**
 * Asks the extender about a pod. Where it cannot be asked through the API server this says why; an address that the
 * user gave has to answer.
 * @param pod namespace/name
 * @throws CliError if the address that was given does not answer
 */
export async function askExtender(client: KubeClient, pod: string, choice: ExtenderChoice): Promise<Asked> {
  if (choice.extender !== undefined) {
    const url = addressOf(choice.extender, pod);
    return { opinions: opinionsOf(await fetchJson(url, choice.extenderCa), choice.extender) };
  }
  try {
    const path = `${EXTENDER_PROXY}/explain`;
    return { opinions: opinionsOf(await client.get(path, { query: { pod }, timeout: DEADLINE }), 'the extender') };
  } catch (error) {
    if (error instanceof CliError) return { whyNot: error.message };
    if (error instanceof KubeError) return { whyNot: whyNot(error) };
    throw error;
  }
}

function whyNot({ status, message }: KubeError): string {
  if (status === 403) return 'you may not ask the extender (services/proxy in plumbline-system)';
  if (status === 404) return 'the extender is not reached through the API server';
  if (status === 503) return 'the extender does not answer (no active replica behind its Service)';
  return `the extender did not answer (${message})`;
}

function opinionsOf(document: unknown, who: string): Opinions {
  const found = answer.safeParse(document);
  if (!found.success) throw new CliError(EXIT.unreachable, `${who} gave no answer of a Plumbline extender`);
  const { active, nodes } = found.data;
  const opinions = nodes.map((one): NodeOpinion => {
    if (one.fits) return one;
    const { node, kind, text, reason: detail, missing } = one;
    return { node, fits: false, kind, text, detail, missing };
  });
  const notes = active ? [] : ['a standby of the extender answered: it knows of no promises to pods in flight'];
  return { source: 'extender', nodes: opinions, notes };
}

function addressOf(extender: string, pod: string): URL {
  let url: URL;
  try {
    url = new URL(`${extender.replace(/\/+$/, '')}/explain`);
  } catch {
    throw usageError(`--extender ${extender}: expected a URL, as https://localhost:9443`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw usageError(`--extender ${extender}: expected a URL that begins with https:// or http://`);
  }
  url.searchParams.set('pod', pod);
  return url;
}

/**
 * Nothing secret is sent, and over a port-forward the certificate's name never fits: it is checked only where the user
 * gives a CA to check it with.
 */
function fetchJson(url: URL, caFile: string | undefined): Promise<unknown> {
  const ca = caFile === undefined ? undefined : readCa(caFile);
  const tls = ca === undefined ? { rejectUnauthorized: false } : { ca, checkServerIdentity: () => undefined };
  const failed = (why: string) => new CliError(EXIT.unreachable, `cannot ask the extender at ${url.origin}: ${why}`);
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const options = { ...(url.protocol === 'https:' && tls), signal: AbortSignal.timeout(DEADLINE * 1000) };
    const one = send(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', (error) => reject(failed(error.message)));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode !== 200) return reject(failed(text.trim().split('\n')[0] || `${response.statusCode}`));
        try {
          resolve(JSON.parse(text));
        } catch {
          reject(failed('the answer is not JSON'));
        }
      });
    });
    one.on('error', (error) => reject(failed(error.message)));
    one.end();
  });
}

function readCa(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw usageError(`--extender-ca ${file}: ${(error as Error).message}`);
  }
}
