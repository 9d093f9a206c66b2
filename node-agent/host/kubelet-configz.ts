import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import * as z from 'zod';
import { cut, PlumblineError } from '../../model/errors.ts';
import { resultOrNone } from '../../model/json.ts';
import { readBounded } from '../files/bounded-file.ts';
import { kubeletConfigOf, type NodeKubeletConfig } from './kubelet-config.ts';

/** Reading the kubelet's /configz failed: access is forbidden, or another program or none answers there. */
class ConfigzError extends PlumblineError {
  constructor(endpoint: string, why: string, options?: ErrorOptions) {
    super('configz', `https://${endpoint}/configz: ${why}`, options);
  }
}

const DEADLINE_SECONDS = 3;
const MAX_REASON_CHARACTERS = 300;
/** Maximum bytes of the answer, and of a file with a certificate. */
const MAX_ANSWER_BYTES = 256 * 1024;
const MAX_PEM_BYTES = 64 * 1024;

const answer = z.object({ kubeletconfig: z.record(z.string(), z.unknown()) });

export interface ConfigzOptions {
  /** `127.0.0.1:10250`. */
  readonly endpoint: string;
  readonly certificates: readonly string[];
  readonly token: string;
}

const serving = z.object({
  address: z.string().nullish(),
  port: z.number().nullish(),
  tlsCertFile: z.string().nullish(),
});

/** Where a kubelet serves, and the files that may contain its certificate. @param settings as written */
export function servingOf(settings: unknown, certDir: string): Pick<ConfigzOptions, 'endpoint' | 'certificates'> {
  const { address, port, tlsCertFile } = serving.safeParse(settings).data ?? {};
  const host = !address || address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address;
  return {
    endpoint: `${host.includes(':') ? `[${host}]` : host}:${port || 10_250}`,
    certificates: tlsCertFile
      ? [tlsCertFile]
      : ['kubelet-server-current.pem', 'kubelet.crt'].map((name) => join(certDir, name)),
  };
}

/**
 * Requests the configuration from the running kubelet. It sends the token only to a server that presents the very
 * certificate that the kubelet has on this host. Needs `get` on `nodes/configz` (before 1.33: nodes/proxy). @throws
 * ConfigzError
 */
export async function readConfigz({ endpoint, certificates, token }: ConfigzOptions): Promise<NodeKubeletConfig> {
  const onDisk = certificates.flatMap((file) => {
    return resultOrNone(() => new X509Certificate(readBounded(file, MAX_PEM_BYTES))) ?? [];
  });
  if (onDisk.length === 0) {
    throw new ConfigzError(endpoint, `no certificate to identify the kubelet in ${certificates.join(' or ')}`);
  }
  const signal = AbortSignal.timeout(DEADLINE_SECONDS * 1000);
  const { hostname, port } = new URL(`https://${endpoint}`);
  const host = hostname.replaceAll(/[[\]]/g, '');
  // Verifying the chain proves nothing here, because kubelets sign their own certificates; the certificate itself is
  // compared.
  const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false });
  const late = () => socket.destroy(new Error(`no answer in ${DEADLINE_SECONDS} s`));
  signal.addEventListener('abort', late, { once: true });
  try {
    await once(socket, 'secureConnect');
    const served = socket.getPeerX509Certificate();
    if (served === undefined || !onDisk.some(({ fingerprint256 }) => fingerprint256 === served.fingerprint256)) {
      throw new ConfigzError(endpoint, 'the server does not present the kubelet’s certificate');
    }
    const { status, text } = await ask(socket, token);
    if (status !== 200) throw new ConfigzError(endpoint, `the kubelet answered ${status}`);
    const { kubeletconfig } = answer.parse(JSON.parse(text));
    return kubeletConfigOf(`https://${endpoint}/configz`, { ...kubeletconfig, kind: 'KubeletConfiguration' });
  } catch (error) {
    if (error instanceof PlumblineError) throw error;
    // A body that is cut off has an error of its own, which is not the reason.
    const cause = socket.errored ?? (error as Error);
    throw new ConfigzError(endpoint, cut(cause.message, MAX_REASON_CHARACTERS), { cause });
  } finally {
    socket.destroy();
  }
}

async function ask(socket: TLSSocket, token: string): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${token}`, connection: 'close', host: 'localhost' };
  const sent = request({ createConnection: () => socket, path: '/configz', headers }).end();
  // An error after the headers of the response also ends its body.
  sent.on('error', () => undefined);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too long');
    parts.push(part);
  }
  return { status: response.statusCode ?? 0, text: Buffer.concat(parts).toString('utf8') };
}
