/* Built from frontend/map: npm ci && npm run build. */
function n({data:l,setTriggerValue:s}){let e=window.headscopeMap??(window.headscopeMap={}),t={data:l,tell:s};return e.latest=t,e.listener?.(t),()=>{e.latest===t&&(e.latest=null)}}export{n as default};
