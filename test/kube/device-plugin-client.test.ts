import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import { type Empty, type RegisterRequest, RegistrationService } from '../../kube/kubelet-api/gen/device-plugin.ts';
import { bindUnix, KubeletApiError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof KubeletApiError && error.code === code;

describe('the registration of a device plugin', () => {
  const temp = tempDirectories();
  const options = { preStartRequired: true, getPreferredAllocationAvailable: false };
  const request = { endpoint: 'near.sock', resourceName: 'plumbline.dev/near', options };

  it('has the version of the API, and closes its connection', async () => {
    const registered: RegisterRequest[] = [];
    const server = new Server(SERVER_OPTIONS);
    server.addService(RegistrationService, {
      register: unaryHandler((sent: RegisterRequest): Empty => {
        registered.push(sent);
        return {};
      }),
    });
    const socket = join(temp(), 'kubelet.sock');
    await bindUnix(server, socket);
    const pipes = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
    const before = pipes();
    await registerPlugin(socket, request);
    assert.deepEqual(registered, [{ version: 'v1beta1', ...request }]);
    await eventually(() => pipes() <= before, 'the connection is closed');
    server.forceShutdown();
  });

  it('fails if no kubelet listens, or if it hangs', async () => {
    await assert.rejects(registerPlugin(join(temp(), 'kubelet.sock'), request), hasCode('unavailable'));
    const server = new Server(SERVER_OPTIONS);
    server.addService(RegistrationService, { register: unaryHandler(() => new Promise<Empty>(() => undefined)) });
    const socket = join(temp(), 'kubelet.sock');
    await bindUnix(server, socket);
    await assert.rejects(registerPlugin(socket, request, { deadlineSeconds: 0.1 }), hasCode('deadline'));
    server.forceShutdown();
  });
});
