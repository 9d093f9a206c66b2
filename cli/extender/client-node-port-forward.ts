/** Apart, because it needs most of client-node: the build makes a bundle of it that only a port-forward loads. */
export { PortForward } from '@kubernetes/client-node';
