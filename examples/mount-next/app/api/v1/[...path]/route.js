import { handler } from '../../../../service.mjs';

const respond = (request) => handler.fetch(request);

export {
  respond as DELETE,
  respond as GET,
  respond as HEAD,
  respond as OPTIONS,
  respond as PATCH,
  respond as POST,
  respond as PUT,
};
