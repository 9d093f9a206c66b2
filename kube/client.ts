import { KubeConfig } from '@kubernetes/client-node';
import { Agent, type Dispatcher, request } from 'undici';
import { ConfigError } from '../runtime/config.ts';
import { underSignals } from '../runtime/signals.ts';
import {
  ACCEPT,
  type Content,
  callsOver,
  decode,
  type Exchange,
  queryString,
  readText,
  statusError,
  unreachable,
} from './calls.ts';
import { KubeError } from './errors.ts';

export type PatchType =
  | 'application/json-patch+json'
  | 'application/merge-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/apply-patch+yaml';

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly signal?: AbortSignal | undefined;
  /** Seconds for the whole exchange. Default 10. A watch has none. */
  readonly timeout?: number;
  /** Bytes of the longest answer that is read; of a longer one a KubeError `TooLarge`. Default LARGEST_ANSWER. */
  readonly largest?: number;
}

/** The API server, by path: `/api/v1/nodes/worker-0`. Bodies are decoded JSON; check them with a schema. */
export interface KubeClient {
  get(path: string, options?: RequestOptions): Promise<unknown>;
  create(path: string, body: object, options?: RequestOptions): Promise<unknown>;
  replace(path: string, body: object, options?: RequestOptions): Promise<unknown>;
  patch(path: string, type: PatchType, body: object, options?: RequestOptions): Promise<unknown>;
  delete(path: string, options?: RequestOptions & { readonly body?: object }): Promise<unknown>;
  /** Opens a watch and returns the stream of its lines; ends with the server, the signal or `close`. */
  watch(path: string, options: RequestOptions): Promise<AsyncIterable<Uint8Array>>;
  close(): Promise<void>;
}

/** Where and as whom to reach the API server. */
export interface KubeClientOptions {
  /** A kubeconfig file; undefined: the service account of the pod this runs in, else KUBECONFIG or ~/.kube/config. */
  readonly kubeconfig?: string | undefined;
  readonly userAgent: string;
}

/** What the library falls back to where it finds nothing. */
const NO_CLUSTER = 'http://localhost:8080';
const TIMEOUT = 10;
/** Sockets to the API server. Watches hold one each. */
const CONNECTIONS = 32;

/**
 * A client over one pool of kept-alive connections. The library's own request layer opens a TLS connection for each
 * request and carries every typed model of the API in memory; from it come the configuration and the credentials.
 *
 * @throws ConfigError if no usable kubeconfig is found
 */
export function createKubeClient({ kubeconfig, userAgent }: KubeClientOptions): KubeClient {
  const config = loadConfig(kubeconfig);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new ConfigError('the kubeconfig names no cluster: set a current-context');
  let pool: Promise<Dispatcher> | undefined;

  /** Credentials are asked for each request, since tokens rotate; the pool is made once from the TLS part. */
  const credentials = async () => {
    const options: Parameters<KubeConfig['applyToHTTPSOptions']>[0] = {};
    await config.applyToHTTPSOptions(options);
    pool ??= Promise.resolve(
      new Agent({
        connections: CONNECTIONS,
        keepAliveTimeout: 60_000,
        connect: {
          ca: options.ca as string | Buffer | undefined,
          cert: options.cert as string | Buffer | undefined,
          key: options.key as string | Buffer | undefined,
          rejectUnauthorized: options.rejectUnauthorized !== false,
          ...(options.servername === undefined ? {} : { servername: options.servername }),
        },
      }),
    );
    const headers = (options.headers ?? {}) as Record<string, string>;
    return { dispatcher: await pool, authorization: headers.Authorization ?? headers.authorization };
  };

  const send = async (
    method: string,
    path: string,
    options: RequestOptions,
    content?: Content,
  ): Promise<Dispatcher.ResponseData> => {
    const { dispatcher, authorization } = await credentials();
    return request(server + path + queryString(options.query), {
      method: method as Dispatcher.HttpMethod,
      dispatcher,
      signal: options.signal ?? null,
      headersTimeout: 0,
      bodyTimeout: 0,
      headers: {
        accept: ACCEPT,
        'user-agent': userAgent,
        ...(authorization === undefined ? {} : { authorization }),
        ...(content === undefined ? {} : { 'content-type': content.type }),
      },
      body: content === undefined ? null : JSON.stringify(content.body),
    });
  };

  const exchange: Exchange = async (method, path, options, content) => {
    const answered = underSignals([options.signal], options.timeout ?? TIMEOUT, async (signal) => {
      const { statusCode, headers, body } = await send(method, path, { ...options, signal }, content);
      return {
        statusCode,
        type: String(headers['content-type'] ?? 'no content type'),
        text: await readText(body, options.largest),
      };
    });
    const { statusCode, type, text } = await answered.catch((error) => {
      if (options.signal?.aborted || error instanceof KubeError) throw error;
      throw unreachable(method, path, error);
    });
    if (statusCode >= 400) throw statusError(method, path, statusCode, text);
    return text === '' ? undefined : decode(path, text, type);
  };

  return {
    ...callsOver(exchange),
    async watch(path, options) {
      try {
        const { statusCode, body } = await send('GET', path, { ...options, query: { ...options.query, watch: true } });
        if (statusCode < 400) return body;
        throw statusError('WATCH', path, statusCode, await readText(body));
      } catch (error) {
        if (error instanceof KubeError || options.signal?.aborted) throw error;
        throw unreachable('WATCH', path, error);
      }
    },
    async close() {
      await (await pool)?.destroy();
    },
  };
}

function loadConfig(file: string | undefined): KubeConfig {
  const config = new KubeConfig();
  try {
    if (file === undefined) config.loadFromDefault();
    else config.loadFromFile(file);
  } catch (error) {
    const where = file ?? 'the default kubeconfig';
    throw new ConfigError(`cannot read ${where}: ${(error as Error).message}; give --kubeconfig`);
  }
  if (file === undefined && config.getCurrentCluster()?.server === NO_CLUSTER) {
    throw new ConfigError(
      'this is not a pod (KUBERNETES_SERVICE_HOST is not set), and there is no kubeconfig: give --kubeconfig',
    );
  }
  return config;
}
