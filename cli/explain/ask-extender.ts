import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import * as z from 'zod';
import type { RefusalKind } from '../../model/placement/verdict.ts';
import { askInCluster } from '../extender/ask.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';
import type { NodeOpinion, Opinions } from './opinion.ts';

const verdict = z.union([
  z.object({
    node: z.string(),
    fits: z.literal(true),
    cpus: z.string(),
    numaNodes: z.array(z.number()),
    warnings: z.array(z.string()).default([]),
  }),
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

/** Seconds: it answers in a few hundred milliseconds. */
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
 * @throws CliError if the address that was given does not answer; KubeError
 */
export async function askExtender(cluster: ClusterAccess, pod: string, choice: ExtenderChoice): Promise<Asked> {
  if (choice.extender !== undefined) {
    const url = addressOf(choice.extender, pod);
    return { opinions: opinionsOf(await fetchJson(url, choice.extenderCa), choice.extender) };
  }
  const asked = await askInCluster(cluster, { pod });
  if ('missing' in asked) return { whyNot: asked.why };
  try {
    return { opinions: opinionsOf(asked.answer, 'the extender') };
  } catch (error) {
    if (error instanceof CliError) return { whyNot: error.message };
    throw error;
  }
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
