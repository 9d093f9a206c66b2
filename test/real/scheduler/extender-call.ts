import { Agent, request } from 'node:http';
import type { Replica } from './stage.ts';

/** The answer of a replica to a filter call, in the form of the scheduler. */
export interface FilterAnswer {
  readonly NodeNames: readonly string[] | null;
  readonly Error: string;
}

/** A client of one replica, over one kept connection. */
export function clientOf({ port }: Replica) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    filter(pod: object, names: readonly string[]): Promise<FilterAnswer> {
      const body = JSON.stringify({ Pod: pod, Nodes: null, NodeNames: names });
      return new Promise((resolve, reject) => {
        const call = request(
          {
            host: '127.0.0.1',
            port,
            path: '/filter',
            method: 'POST',
            agent,
            headers: { 'content-length': body.length },
          },
          (response) => {
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
            response.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString()) as FilterAnswer));
          },
        );
        call.on('error', reject).end(body);
      });
    },
    close: () => agent.destroy(),
  };
}

/** A pod with CPUs of its own, in the form of a filter call. */
export function launcher(uid: string, cpu: string): object {
  const amounts = { cpu, memory: '64Mi', 'devices.kubevirt.io/kvm': '1' };
  return {
    metadata: { name: uid, namespace: 'default', uid },
    spec: { containers: [{ name: 'compute', resources: { requests: amounts, limits: amounts } }] },
  };
}
