import type { RequestOptions } from 'node:https';

/** The address of the API server and the credentials of requests to it. */
export interface ApiAccess {
  /** `https://10.96.0.1:443`, without a slash at its end. */
  readonly server: string;
  /** Called for each request, because tokens are replaced while a process runs. */
  readonly requestOptions: () => ApiConnectionOptions | Promise<ApiConnectionOptions>;
}

export interface ApiConnectionOptions
  extends Pick<
    RequestOptions,
    'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'servername' | 'checkServerIdentity' | 'auth' | 'agent'
  > {
  readonly headers?: Readonly<Record<string, string>>;
}

/** The access of a daemon: a service account, or a kubeconfig set by a flag. */
export interface DaemonAccess extends ApiAccess {
  /** The current bearer token; the kubelet replaces it every hour. Undefined: there is none. */
  readonly token: () => string | undefined;
  /** The file that holds the token; undefined if a kubeconfig contains the token itself or there is none. */
  readonly tokenFile: string | undefined;
}
