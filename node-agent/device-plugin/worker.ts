import { join } from 'node:path';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import { createHost } from '../../model/host.ts';
import { createLogger } from '../../runtime/log.ts';
import {
  createBeforeStart,
  type FromPluginThread,
  type PluginThreadData,
  type ToPluginThread,
} from './before-start.ts';
import { createDevicePlugin } from './device-plugin.ts';

/**
 * The program of the device plugin's own thread. The kubelet calls Allocate during the admission of a pod, for every
 * pod on the node, and waits without a deadline. This thread answers even while the agent's main thread is busy.
 */
async function run(port: MessagePort, data: PluginThreadData): Promise<void> {
  const log = createLogger('node-agent', data.logLevel);
  const stopping = new AbortController();
  const podResources = createPodResourcesClient(join(data.kubeletDir, POD_RESOURCES_SOCKET));
  const post = (message: FromPluginThread) => port.postMessage(message);
  const barrier = createBeforeStart({ ...data, host: createHost(data.host), podResources, log, post });
  const plugin = createDevicePlugin({
    kubeletDir: data.kubeletDir,
    beforeStart: barrier.beforeStart,
    log,
    onRegistration: (resource, outcome) => post({ kind: 'registered', resource, outcome }),
  });
  port.on('message', (message: ToPluginThread) => {
    switch (message.kind) {
      case 'resources':
        barrier.know(message.resources, message.wholeCoresOnly);
        return plugin.advertise(message.resources);
      case 'answer':
        return barrier.answered(message.call, message.refusal);
      case 'stop':
        return stopping.abort();
    }
  });
  await plugin.run(stopping.signal);
  podResources.close();
  port.close();
}

if (parentPort === null) throw new Error('run this program as a worker thread of the node agent');
void run(parentPort, workerData as PluginThreadData);
