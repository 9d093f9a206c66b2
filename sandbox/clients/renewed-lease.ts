import { formatMicroTime } from '../../model/lease/timing.ts';
import { apiVersionOf, LEASES } from '../api-server/built-in-types.ts';
import type { KubeObject, Meta } from '../objects.ts';
import type { LocalClient } from './local-client.ts';

export interface RenewedLeaseOptions {
  readonly client: LocalClient;
  readonly metadata: Meta & { readonly namespace: string };
  readonly holder: string;
  readonly durationSeconds: number;
  readonly intervalSeconds: number;
  readonly onFault: (error: unknown) => void;
}

/** A Lease that its only holder renews: of a kubelet for its node, or of a scheduler whose name nothing else has. */
export class RenewedLease {
  readonly #options: RenewedLeaseOptions;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: RenewedLeaseOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { holder, intervalSeconds, onFault } = this.#options;
    await this.#write(holder);
    this.#timer = setInterval(() => {
      this.#writing = this.#write(holder).catch(onFault);
    }, intervalSeconds * 1000);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
  }

  async release(): Promise<void> {
    await this.stop();
    await this.#write('').catch(this.#options.onFault);
  }

  async #write(holderIdentity: string): Promise<void> {
    const { client, metadata, durationSeconds } = this.#options;
    const renewTime = formatMicroTime(BigInt(Date.now()) * 1000n);
    const spec = { holderIdentity, leaseDurationSeconds: Math.round(durationSeconds), renewTime };
    const lease: KubeObject = { apiVersion: apiVersionOf(LEASES), kind: LEASES.kind, metadata, spec };
    if (!client.get(LEASES, metadata.namespace, metadata.name)) await client.create(LEASES, lease);
    else {
      await client.edit(LEASES, lease, (draft) => {
        draft['spec'] = spec;
      });
    }
  }
}
